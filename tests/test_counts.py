"""Numbers of things in messages are told by `counted`: no source says "1 requests"."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    file for part in ("vertumnus", "console", "profiling") for file in sorted((ROOT / part).rglob("*.py"))
]

NOUNS = (
    "blocks|bytes|candidates|compositions|cores|days|files|groups|jobs|layers|links|nodes|pairs|problems|"
    "profiles|ranks|requests|rounds|rows|runs|scans|seeds|slices|slots|stamps|steps|sweeps|times|tokens|traces|"
    "transfers|windows|workers"
)
PLURAL = re.compile(rf" (?:[a-z]*[a-rt-z] )?(?:{NOUNS})\b(?![/=_])")
"""What follows a number, with at most one word before the noun that is no verb; a unit goes on."""


def bare_counts(source: str) -> Iterator[str]:
    """Yield each value of the f-strings of *source* that a plural follows, whatever its number."""
    for text in ast.walk(ast.parse(source)):
        parts = text.values if isinstance(text, ast.JoinedStr) else []
        for value, after in pairwise(parts):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            if PLURAL.match(str(after.value)) and not _is_no_count(value):
                yield f"{{{ast.unparse(value.value)}}}{after.value}"


def _is_no_count(value: ast.FormattedValue) -> bool:
    """Return whether *value* is a constant, which is never 1, text, or a number that is no whole one."""
    spec = ast.unparse(value.format_spec) if value.format_spec else "','"
    is_constant = isinstance(value.value, ast.Name) and value.value.id.isupper()
    is_text = isinstance(value.value, ast.Call) or value.conversion != -1
    return is_constant or is_text or "," not in spec or "." in spec or ">" in spec


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("f'{n} requests'", ["{n} requests"]),
        ("f'placed {self.attempt} times, last'", ["{self.attempt} times, last"]),
        ("f'{a} of {len(x):,} more blocks'", []),
        ("f'{done} of {total:,} planned runs are there'", ["{total} planned runs are there"]),
        ("f'{rate} requests/s'", []),
        ("f'{MOST} requests'", []),
        ("f'{x:.3g} tokens'", []),
        ("f'{name!r} tokens'", []),
        ("f\"{counted(n, 'request')} of {n} this\"", []),
    ],
)
def test_what_counts_as_bare(source: str, found: list[str]) -> None:
    """A name or attribute before a plural; calls, constants, units and fractions are something else."""
    assert list(bare_counts(source)) == found


def test_no_plural_follows_a_bare_number() -> None:
    """In none of the packages: `counted` says it with the noun that fits the number."""
    found = {str(file.relative_to(ROOT)): list(bare_counts(file.read_text("utf-8"))) for file in SOURCES}
    assert {file: bare for file, bare in found.items() if bare} == {}
