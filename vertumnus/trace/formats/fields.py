"""Typed access to one record of a file, which notes what is wrong and goes on."""

from collections.abc import Mapping, Sequence

import msgspec

from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.trace.formats.known import UNIT_NS

MOST_TOKENS: Tokens = 2**31
MOST_NS: Nanoseconds = 2**62
MOST_ID = 2**63


class RowError(ValueError):
    """What is wrong with one row, field by field."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Fields:
    """The fields of one JSON object; call `done` when all are read."""

    def __init__(self, record: Mapping[str, object]) -> None:
        self.record = record
        self.problems: list[str] = []

    def done(self) -> None:
        """Raise RowError with every field that was missing, of another type or out of bounds."""
        if self.problems:
            raise RowError(*self.problems)

    def tokens(self, key: str) -> Tokens:
        """Return the whole number of at least 1 at *key*."""
        value = self.record.get(key)
        if type(value) is int and 1 <= value < MOST_TOKENS:
            return value
        self.wrong(key, f"a whole number from 1 to {MOST_TOKENS - 1}")
        return 1

    def output(self, key: str, may_be_empty: bool) -> Tokens:
        """Return the output length at *key*; 0 is a problem unless it *may_be_empty*."""
        value = self.record.get(key)
        if type(value) is int and value == 0:
            if not may_be_empty:
                self.problems.append(f"{key}: {NO_OUTPUT}")
            return 0
        return self.tokens(key)

    def has(self, key: str) -> bool:
        """Return whether there is something at *key*; null is nothing."""
        return self.record.get(key) is not None

    def instant(self, key: str, unit_ns: Nanoseconds, has_fractions: bool = False) -> Nanoseconds:
        """Return the time at *key* [ns], which counts in units of *unit_ns*; seconds may have fractions."""
        value = self.record.get(key)
        is_whole = unit_ns < UNIT_NS["s"] and not has_fractions
        kinds = (int,) if is_whole else (int, float)  # by type: true is no number
        if type(value) in kinds and isinstance(value, int | float) and 0 <= value * unit_ns < MOST_NS:
            return round(value * unit_ns)
        self.wrong(key, "a whole number of ms, at least 0" if is_whole else "a number, at least 0")
        return 0

    def ids(self, key: str) -> tuple[int, ...]:
        """Return the block ids at *key*."""
        value = self.record.get(key)
        if isinstance(value, list) and all(type(i) is int and 0 <= i < MOST_ID for i in value):
            return tuple(value)
        self.wrong(key, "a list of whole numbers, each at least 0")
        return ()

    def text(self, key: str) -> str:
        """Return the string at *key*."""
        value = self.record.get(key)
        if isinstance(value, str):
            return value
        self.wrong(key, "a string")
        return ""

    def list_of_texts(self, key: str) -> list[str]:
        """Return the strings at *key*."""
        value = self.record.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        self.wrong(key, "a list of strings")
        return []

    def objects(self, key: str) -> Sequence[Mapping[str, object]]:
        """Return the JSON objects in the list at *key*."""
        value = self.record.get(key)
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value
        self.wrong(key, "a list of objects")
        return ()

    def identity(self, key: str) -> str | None:
        """Return the number or string at *key* as a string; None where there is none, or -1."""
        value = self.record.get(key)
        if value is None or value == -1:
            return None
        if type(value) in (int, str):
            return str(value)
        self.wrong(key, "a number or a string")
        return None

    def wrong(self, key: str, allowed: str) -> None:
        """Note that *key* is missing, or holds something that is not *allowed*."""
        found = f"found {spelled(self.record[key])}, must be" if key in self.record else "missing, must be"
        self.problems.append(f"{key}: {found} {allowed}")


NO_OUTPUT = "found 0, must be at least 1; empty_outputs=drop or empty_outputs=keep reads such rows"


def json_object(text: bytes) -> Fields:
    """Return the fields of the JSON object that *text* spells. Raises RowError when it is none."""
    try:
        return Fields(msgspec.json.decode(text, type=dict[str, object]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        array = "; one object a line is read, jq -c '.[]' takes an array apart" if text[:1] == b"[" else ""
        shown = text[:60].decode("utf-8", "replace").strip()
        raise RowError(f"not a JSON object: {error}; found {shown!r}{array}") from None


def spelled(value: object) -> str:
    """Return *value* as JSON, shortened where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
