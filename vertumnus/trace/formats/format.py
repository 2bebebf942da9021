"""What a reader needs to know of a format, and a format of a config."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.trace.rows import TraceRow


class Reading(NamedTuple):
    """How a file is to be read."""

    unit_ns: Nanoseconds
    """One unit of its time stamps [ns]; 1 where it has none."""
    block_tokens: Tokens
    may_be_empty: bool
    """Whether rows without any output are read."""
    chars_per_token: float
    """For texts."""


class HasTimes(Protocol):
    """Knows what it reads."""

    @property
    def has_times(self) -> bool:
        """Whether rows have times of their own; known when they are read."""


class Rows(HasTimes, Protocol):
    """Turns the lines of one file into rows; may remember what it saw."""

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the rows that one line spells, in order. Raises RowError."""


class TextFormat(NamedTuple):
    """A format of lines."""

    rows: Callable[[Reading, bytes], Rows]
    """Makes the parser of a file, out of its header where it has one."""
    has_header: bool = False
