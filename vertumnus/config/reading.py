"""From a plain tree (what YAML and the command line give) to frozen structs, all problems at once.

``msgspec.convert`` stops at the first problem; this walk goes on and names each one by its key.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from vertumnus.config.wording import allowed, listed, names, nearest, not_one_of, show
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import largest

MISSING: Final = "???"
"""How YAML spells a value that the user has to give."""

UNREADABLE: Final = object()
"""Stands for a value that could not be read; the problem is already noted."""


class TreeReader:
    """Reads values against their annotated types and gathers every problem on the way."""

    def __init__(self, root: type[Struct]) -> None:
        self.problems: list[str] = []
        self._root = root

    def read(self, kind: Any, value: object, path: str) -> Any:
        """Return *value* as *kind*, or UNREADABLE after noting why under *path*."""
        if get_origin(kind) in (Union, types.UnionType):
            return self._union(get_args(kind), value, path)
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self.struct(kind, value, path)
        if get_origin(kind) in (tuple, list) and isinstance(value, Sequence) and not isinstance(value, str):
            return self._sequence(kind, value, path)
        if get_origin(kind) is dict and isinstance(value, Mapping):
            return self._mapping(kind, value, path)
        return self._leaf(kind, value, path)

    def struct(self, kind: type[Struct], value: object, path: str) -> Any:
        """Return *value*, a mapping, as the struct *kind*; keys that *kind* does not have are noted."""
        if not isinstance(value, Mapping):
            return self._note(path, f"found {show(value)}, must be a group of keys: {listed(names(kind))}")
        read = self.fields(kind, value, path)
        if any(item is UNREADABLE for item in read.values()):
            return UNREADABLE
        try:
            return kind(**read)
        except ConfigError as error:
            self.problems.extend(error.problems)
        except ValueError as error:
            for problem in str(error).splitlines():
                self._out_of_range(kind, problem, path)
        return UNREADABLE

    def fields(self, kind: type[Struct], value: Mapping[Any, object], path: str) -> dict[str, Any]:
        """Return the fields of *kind* given in *value*, each read; a required one not given is UNREADABLE."""
        for key in value:
            if key not in names(kind) and key != kind.__struct_config__.tag_field:
                self._unknown(kind, str(key), path)
        read = {}
        for field in msgspec.structs.fields(kind):
            below = _join(path, field.name)
            if field.name in value and value[field.name] != MISSING:
                read[field.name] = self.read(field.type, value[field.name], below)
            elif field.name in value or field.required:
                read[field.name] = self._note(below, f"required, but not set; must be {allowed(field.type)}")
        return read

    def _union(self, kinds: Sequence[Any], value: object, path: str) -> Any:
        if value is None and type(None) in kinds:
            return None
        structs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)]
        if len(structs) > 1:
            return self._tagged(structs, value, path)
        present = [kind for kind in kinds if kind is not type(None)]
        mappings = [kind for kind in present if get_origin(kind) is dict]
        if mappings and isinstance(value, Mapping):
            return self.read(mappings[0], value, path)
        if len(present) == 1 and present[0] not in (int, float, bool, str):
            return self.read(present[0], value, path)
        return self._leaf(Union[tuple(kinds)], value, path)  # noqa: UP007  (built at run time)

    def _tagged(self, kinds: Sequence[type[Struct]], value: object, path: str) -> Any:
        """Read one of several structs, told apart by the key that names the variant."""
        by_tag = {str(kind.__struct_config__.tag): kind for kind in kinds}
        tag_field = str(kinds[0].__struct_config__.tag_field)
        if not isinstance(value, Mapping):
            return self._note(path, f"found {show(value)}, must be a group of keys with {tag_field!r}")
        tag = value.get(tag_field)
        if not isinstance(tag, str) or tag not in by_tag:
            return self._note(_join(path, tag_field), not_one_of(tag, by_tag))
        return self.struct(by_tag[tag], value, path)

    def _sequence(self, kind: Any, value: Sequence[object], path: str) -> Any:
        item_kinds = get_args(kind)
        if len(item_kinds) == 2 and item_kinds[1] is not Ellipsis:
            return self._leaf(kind, value, path)  # a pair: its length matters
        read = [self.read(item_kinds[0], item, f"{path}[{i}]") for i, item in enumerate(value)]
        return UNREADABLE if any(item is UNREADABLE for item in read) else get_origin(kind)(read)

    def _mapping(self, kind: Any, value: Mapping[Any, object], path: str) -> Any:
        key_kind, item_kind = get_args(kind)
        read: dict[Any, Any] = {}
        for key, item in value.items():  # a later key wins: Hydra adds 4 from the command line as "4"
            below = _join(path, key)
            read_key = self._leaf(key_kind, _number_key(key) if key_kind is int else key, below)
            read[read_key] = self.read(item_kind, item, below)
        return UNREADABLE if any(UNREADABLE in pair for pair in read.items()) else read

    def _leaf(self, kind: Any, value: object, path: str) -> Any:
        if get_origin(kind) is Literal and value not in get_args(kind):
            return self._note(path, not_one_of(value, get_args(kind)))
        if isinstance(value, int | float) and largest(path) < abs(value) < inf:
            return self._note(path, f"found {show(value)}, must be within +-{largest(path):,.0f}")
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return self._note(path, f"found {show(value)}, must be {allowed(kind)}")

    def _unknown(self, kind: type[Struct], key: str, path: str) -> None:
        variant = kind.__struct_config__.tag
        reach = f"unknown key for {path} {variant}" if variant else "unknown key"
        meant = nearest(key, names(kind))
        suggestion = _join(path, meant) if meant else None if variant else self._elsewhere(key)
        hint = f"did you mean {suggestion}?" if suggestion else f"allowed: {listed(names(kind))}"
        self._note(_join(path, key), f"{reach}; {hint}")

    def _elsewhere(self, key: str) -> str | None:
        last = {known.rpartition(".")[2]: known for known in reversed(list(key_paths(self._root)))}
        near = nearest(key, last)
        return last[near] if near else None

    def _out_of_range(self, kind: type[Struct], text: str, path: str) -> None:
        name, _, rest = text.partition(" ")
        if name.partition(".")[0] in names(kind):
            self._note(_join(path, name), rest)
        else:
            self._note(path, text)

    def _note(self, path: str, problem: str) -> object:
        self.problems.append(f"{path}: {problem}")
        return UNREADABLE


def key_paths(kind: type[Struct], path: str = "") -> Iterable[str]:
    """Yield the dotted path of every key below *kind*, every variant of a union included."""
    for field in msgspec.structs.fields(kind):
        below = _join(path, field.name)
        yield below
        for option in (field.type, *get_args(field.type)):
            if isinstance(option, type) and issubclass(option, Struct):
                yield from key_paths(option, below)


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _number_key(key: object) -> object:
    return int(key) if isinstance(key, str) and key.isdecimal() else key
