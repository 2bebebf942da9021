"""The report's files: report.md, report.html, and every picture as SVG and PNG in both themes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole
from vertumnus.report.paper.catalogue import Entry
from vertumnus.report.paper.chapter import Runs
from vertumnus.report.paper.draw import draw
from vertumnus.report.paper.html import html
from vertumnus.report.paper.markdown import markdown
from vertumnus.report.paper.section import Section, failed_section, make_section
from vertumnus.report.paper.theme import THEMES

PAGES = ("report.md", "report.html")
TITLE = "The paper's evaluation, from our runs"
INTRO = (
    "Each table and figure of Adaptive Context Parallelism for Production LLM Serving beside what our runs "
    "say: the values that the paper's text states, ours with a 95 % interval over seeds, and the "
    "difference. Ours agrees where its interval meets what is stated, and is close within 2 %, or within a "
    "point of a share; it is open where a gain's interval holds no gain, too: so few seeds cannot tell.",
    "SIMULATED: the control plane, fleet and loop that serve live, in virtual time; prefill times come from "
    "presets that were chosen so that the paper's speed-ups and saturation rates come out. EXECUTED: "
    "computed by ranks of this machine. All numbers come from the runs' tables.",
)


class Illustrated(NamedTuple):
    """A section with its pictures drawn."""

    section: Section
    svg: Mapping[tuple[str, str], bytes]
    """By name of the picture and of the theme."""
    files: Mapping[str, bytes]
    """By name: each picture in every theme and kind."""


def illustrated(entry: Entry, runs: Runs, words: Sequence[str]) -> Illustrated:
    """Return the section of *entry* from *runs*, which were made with the overrides *words*.

    One that cannot be made says why, and leaves the others whole; under VERTUMNUS_DEBUG=1 it raises.
    """
    try:
        return drawn(make_section(entry, runs, words))
    except Exception as error:  # whatever is wrong with one chapter, the others are asked for
        if os.environ.get("VERTUMNUS_DEBUG") == "1":
            raise
        return Illustrated(failed_section(entry, runs, words, error), {}, {})


def drawn(section: Section) -> Illustrated:
    """Return *section* with its pictures."""
    svg: dict[tuple[str, str], bytes] = {}
    files: dict[str, bytes] = {}
    for picture in section.chapter.pictures:
        for theme in THEMES:
            kinds = draw(picture, theme)
            svg[picture.name, theme.name] = kinds["svg"]
            files |= {f"{picture.name}-{theme.name}.{kind}": data for kind, data in kinds.items()}
    return Illustrated(section, svg, files)


def report_files(made: Sequence[Illustrated], remarks: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the files of the report of the sections *made* by name, its `PAGES` last.

    *remarks* say what is special about its runs.
    """
    sections = [each.section for each in made]
    svg = {key: data for each in made for key, data in each.svg.items()}
    intro = (*INTRO, *remarks)
    pages = (markdown(TITLE, intro, sections), html(TITLE, intro, sections, svg))
    return {
        **{name: data for each in made for name, data in each.files.items()},
        **{name: page.encode() for name, page in zip(PAGES, pages, strict=True)},
    }


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    """Write *files* into the folder *out*. Raises ConfigError when one cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            _write(out / name, data)
    except OSError as error:
        raise ConfigError(f"--out: {error.filename or out}: cannot be written: {error.strerror}") from error


def _write(file: Path, data: bytes) -> None:
    write_whole(file, lambda out: out.write(data))
