"""A file that a flag names to be written: looked at before any work is done for it."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from vertumnus.domain.extras import installing

PICTURES = (".png", ".svg", ".pdf")
"""Endings of the kinds of pictures."""


def file_problems(flag: str, file: Path, endings: Sequence[str], *, replace: bool) -> Iterator[str]:
    """Yield why *file* cannot be written for *flag*: its ending, its folder, or that it is there already.

    What is there is only replaced where that was asked for.
    """
    if not file.name.endswith(tuple(endings)):
        yield f"{flag}: found {file}, its name must end in one of {', '.join(endings)}"
    if not file.parent.is_dir():
        yield f"{flag}: found {file}, but there is no folder {file.parent}"
    if file.is_dir():
        yield f"{flag}: found {file}, which is a folder"
    elif file.exists() and not replace:
        yield f"{flag}: {file} is there already; --force replaces it"


def drawing_problems(file: Path, *, replace: bool) -> Iterator[str]:
    """Yield why no picture can be drawn into *file* here for the flag --figure."""
    yield from file_problems("--figure", file, PICTURES, replace=replace)
    if find_spec("matplotlib") is None:
        yield f"--figure: matplotlib is not installed; {installing('figures')}"
