"""What is seen, as a picture and as text."""

import re
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.etree import ElementTree

from textual.app import App

from vertumnus.records.atomic import write_whole

_CELL = 12.2
"""Width of a character in the pictures that Textual makes."""
_TEXT = "{http://www.w3.org/2000/svg}text"


_LOADED = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""What makes a reader load fonts from elsewhere."""
FONTS = '"Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace'


def picture_of(app: "App[None]", title: str) -> str:
    """Return the screen of *app* as an SVG that loads nothing from anywhere."""
    svg = _LOADED.sub("", app.export_screenshot(title=title))
    lines = (line.rstrip() for line in svg.replace("Fira Code, monospace", FONTS).splitlines())
    return "\n".join(line for line in lines if line) + "\n"


class Saved(NamedTuple):
    """What became of it."""

    text: str
    """For the operator."""
    is_done: bool


def saved(app: "App[None]", run_id: str) -> Saved:
    """Write the screen of *app* to two files in the current folder, and say where they are or why not."""
    try:
        svg, text = _save(app, run_id)
    except OSError as error:
        why = f"cannot write it here: {error.strerror}; start the console in a folder where there is room"
        return Saved(why, False)
    return Saved(f"saved {svg} and {text}", True)


def _save(app: "App[None]", run_id: str) -> tuple[str, str]:
    stem = f"console-{run_id[-6:]}-{datetime.now():%H%M%S}"
    svg = picture_of(app, f"vertumnus console {run_id}")
    for ending, content in (("svg", svg), ("txt", text_of_svg(svg))):
        write_whole(Path(f"{stem}.{ending}"), partial(_write, content))
    return f"{stem}.svg", f"{stem}.txt"


def _write(content: str, file: BinaryIO) -> None:
    file.write(content.encode())


def text_of_svg(svg: str) -> str:
    """Return the lines of text of a picture that Textual made."""
    lines: dict[int, list[tuple[int, str]]] = {}
    for element in ElementTree.fromstring(svg).iter(_TEXT):
        number = re.search(r"line-(\d+)", element.get("clip-path", ""))
        if number is not None:
            column = round(float(element.get("x", "0")) / _CELL)
            lines.setdefault(int(number[1]), []).append((column, element.text or ""))
    last = max(lines, default=-1)
    return "".join(f"{_line(lines.get(number, []))}\n" for number in range(last + 1))


def _line(parts: list[tuple[int, str]]) -> str:
    text = ""
    for column, part in sorted(parts):
        text = text.ljust(column) + part.replace("\u00a0", " ")
    return text.rstrip()
