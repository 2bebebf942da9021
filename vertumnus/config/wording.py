"""The words of the messages about a configuration: what was found, what is allowed, what was meant."""

import types
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Struct

_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the one of *known* that *name* was probably meant to be."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def allowed(kind: Any) -> str:
    """Say in words what a value of type *kind* may be."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {listed(arguments)}"
    if origin is Annotated:
        return allowed(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(allowed(argument) for argument in arguments)
    if origin in (tuple, list):
        return f"a list, each item {allowed(arguments[0])}"
    if origin is dict:
        return f"pairs of {allowed(arguments[0])} and {allowed(arguments[1])}"
    if isinstance(kind, type) and issubclass(kind, Struct):
        return f"a group of keys: {listed(names(kind))}"
    return "null" if kind is type(None) else _KINDS.get(kind, str(kind))


def show(value: object) -> str:
    """Return *value* as the user would type it in YAML, shortened."""
    text = str(value).lower() if isinstance(value, bool) else "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def names(kind: type[Struct]) -> tuple[str, ...]:
    """Return the keys that a group of type *kind* has, without the one that names the variant."""
    return kind.__struct_fields__


def listed(items: Iterable[object]) -> str:
    """Return *items* as a list in a sentence."""
    return ", ".join(str(item) for item in items) or "nothing"


def not_one_of(value: object, options: Iterable[object]) -> str:
    """Say that *value* is none of *options*."""
    spelled = [str(option) for option in options]
    return f"found {show(value)}, must be one of {listed(spelled)}{_meant(str(value), spelled)}"


def _meant(name: str, options: Iterable[str]) -> str:
    near = nearest(name, options)
    return f"; did you mean {near}?" if near else ""


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """Return the end of a message about *name*: the nearest option, and all that there are."""
    spelled = list(options)
    return f"{_meant(name, spelled)} (allowed: {listed(spelled)})"
