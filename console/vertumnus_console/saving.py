"""What is seen, as a picture and as text."""

import re
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from textual.app import App

_CELL = 12.2
"""Width of a character in the pictures that Textual makes."""
_TEXT = "{http://www.w3.org/2000/svg}text"


def save(app: "App[None]", run_id: str) -> tuple[str, str]:
    """Write the screen of *app* to two files in the current folder and return their names; raises OSError."""
    stem = f"console-{run_id[-6:]}-{datetime.now():%H%M%S}"
    svg = app.export_screenshot(title=f"vertumnus console {run_id}")
    Path(f"{stem}.svg").write_text(svg)
    Path(f"{stem}.txt").write_text(text_of_svg(svg))
    return f"{stem}.svg", f"{stem}.txt"


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
