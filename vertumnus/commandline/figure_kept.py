"""What a report of the figures was made of, kept beside it: the next call sees whether all of it still holds.

figures/made_of.json          MadeOf; only of a report that is whole, with a VALID run of every job
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from vertumnus.commandline.figure_sources import ASKED, of_report_in, of_runs, of_traces

MADE_OF = "made_of.json"


class MadeOf(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a report was made of."""

    parts: dict[str, str]
    """The digest of each part."""
    sweeps: tuple[str, ...]
    """The sweeps whose runs it reads."""
    traces: tuple[str, ...]
    """The trace files that these were served from."""
    files: tuple[str, ...]
    """Its own."""
    pages: tuple[str, ...]
    """Those of them that are named on stdout."""
    remarks: tuple[str, ...] = ()
    """What was told of it on stderr."""

    @property
    def encoded(self) -> bytes:
        """Return the content of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


class Kept:
    """A report that is there, with what it was made of."""

    def __init__(self, out: Path, made_of: MadeOf, made_at: datetime) -> None:
        self._out = out
        self._made_of = made_of
        self.made_at = made_at
        """Local time."""

    @classmethod
    def find(cls, out: Path) -> "Kept | None":
        """Return the report in the folder *out*; None where none is known to be whole."""
        file = out / MADE_OF
        try:
            made_of = msgspec.json.decode(file.read_bytes(), type=MadeOf)
            return cls(out, made_of, datetime.fromtimestamp(file.stat().st_mtime))
        except (OSError, msgspec.MsgspecError):
            return None

    @property
    def pages(self) -> list[Path]:
        """Its files that are named on stdout."""
        return [self._out / page for page in self._made_of.pages]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was told of it on stderr."""
        return self._made_of.remarks

    def is_of(self, given: Mapping[str, str]) -> bool:
        """Return whether the command that begins from *given* is the one that it was made by."""
        return given.get(ASKED) == self._made_of.parts.get(ASKED)

    def changed(self, given: Mapping[str, str], runs_dir: Path) -> list[str]:
        """Return the parts that have changed since, where a report now would begin from *given*."""
        made_of = self._made_of
        now = {
            **given,
            **of_traces(made_of.traces),
            **of_runs(runs_dir, made_of.sweeps),
            **of_report_in(self._out, made_of.files),
        }
        return [part for part in {**made_of.parts, **now} if now.get(part) != made_of.parts.get(part)]
