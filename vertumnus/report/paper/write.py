"""The report's files: report.md, report.html, and every picture as SVG and PNG in both themes."""

from collections.abc import Sequence
from pathlib import Path

from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole
from vertumnus.report.paper.draw import draw
from vertumnus.report.paper.html import html
from vertumnus.report.paper.markdown import markdown
from vertumnus.report.paper.section import Section
from vertumnus.report.paper.theme import THEMES

TITLE = "The paper's evaluation, from our runs"
INTRO = (
    "Each table and figure of Adaptive Context Parallelism for Production LLM Serving beside what our runs "
    "say: the values that the paper's text states, ours with a 95 % interval over seeds, and the "
    "difference. Ours agrees where its interval meets what is stated, and is close within 2 %, or within a "
    "point of a share.",
    "SIMULATED: the control plane, fleet and loop that serve live, in virtual time; prefill times come from "
    "presets that were chosen so that the paper's speed-ups and saturation rates come out. EXECUTED: "
    "computed by ranks of this machine. All numbers come from the runs' tables.",
)


def write_report(out: Path, sections: Sequence[Section], remarks: Sequence[str] = ()) -> list[Path]:
    """Write the report of *sections* into the folder *out* and return its pages.

    *remarks* say what is special about its runs. Raises ConfigError when a file cannot be written.
    """
    svg: dict[tuple[str, str], bytes] = {}
    files: dict[str, bytes] = {}
    for section in sections:
        for picture in section.chapter.pictures:
            for theme in THEMES:
                drawn = draw(picture, theme)
                svg[picture.name, theme.name] = drawn["svg"]
                files |= {f"{picture.name}-{theme.name}.{kind}": data for kind, data in drawn.items()}
    intro = (*INTRO, *remarks)
    pages = {
        "report.md": markdown(TITLE, intro, sections).encode(),
        "report.html": html(TITLE, intro, sections, svg).encode(),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in {**files, **pages}.items():
            _write(out / name, data)
    except OSError as error:
        raise ConfigError(f"--out: {error.filename or out}: cannot be written: {error.strerror}") from error
    return [out / name for name in pages]


def _write(file: Path, data: bytes) -> None:
    write_whole(file, lambda out: out.write(data))
