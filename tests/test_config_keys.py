"""No key of a configuration is without effect: something reads each of them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from msgspec import Struct

from vertumnus.config import RunConfig

ROOT = Path(__file__).parents[1]
FOR_PEOPLE = {("ModelProfile", "capacity_provenance")}
"""Kept and shown as part of a whole."""


def structs_of(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Return the structs that a config of *kind* is made of, by name."""
    if isinstance(kind, type) and issubclass(kind, Struct) and kind.__name__ not in found:
        found[kind.__name__] = kind
        for name, hint in get_type_hints(kind).items():
            if name in kind.__struct_fields__:
                structs_of(hint, found)
    for each in get_args(kind):
        structs_of(each, found)
    return found


CONFIGS = structs_of(RunConfig, {})


def read_in(node: ast.AST) -> Iterator[str]:
    """Yield the attributes that code reads, where it does more than check them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and child.name == "__post_init__":
            continue
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Load):
            yield child.attr
        yield from read_in(child)


@pytest.fixture(scope="module")
def read() -> set[str]:
    """Every attribute that the packages read."""
    files = [file for part in ("vertumnus", "console", "profiling") for file in (ROOT / part).rglob("*.py")]
    return {name for file in files for name in read_in(ast.parse(file.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_key_is_read(name: str, read: set[str]) -> None:
    """By its name, somewhere outside of the checks of its own struct."""
    keys = {key for key in CONFIGS[name].__struct_fields__ if (name, key) not in FOR_PEOPLE}
    assert keys <= read
