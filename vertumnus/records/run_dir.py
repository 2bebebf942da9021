"""The folder of one run, and the folder of all runs.

    runs/<ULID>/config.yaml       the composed configuration, as text
                _STARTED.json     RunStart: name, overrides, versions, machine
                facts.log         the log, the source of the tables
                actions.sock      where operators' actions go in, while a run keeps to the wall clock
                <table>.parquet   each of `columns.TABLES`
                _SUCCESS.json     RunEnd; written last: the tables beside it are whole

A run without _SUCCESS.json is running while its log is locked, and unfinished after that.
"""

from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.atomic import sync_folder, write_whole
from vertumnus.records.columns import TABLES_VERSION
from vertumnus.records.log import is_locked
from vertumnus.records.provenance import RunStart
from vertumnus.records.run_row import RunStatus

_T = TypeVar("_T")


class RunEnd(Struct, frozen=True, kw_only=True):
    """How a run ended, and that its tables are whole."""

    status: RunStatus
    verdict: Literal["VALID", "INVALID"]
    reasons: tuple[str, ...]
    schema_version: int = TABLES_VERSION


class RunDir(NamedTuple):
    """The files of one run."""

    path: Path

    @classmethod
    def create(cls, runs_dir: Path, start: RunStart, config_text: str) -> "RunDir":
        """Make the folder of a new run below *runs_dir*, which is made too if missing.

        Raises ConfigError when that is not possible.
        """
        run = cls(runs_dir / start.run_id)
        try:
            run.path.mkdir(parents=True)
            write_whole(run.path / "config.yaml", lambda file: file.write(config_text.encode()))
            write_whole(run.started, lambda file: file.write(_pretty(start)))
            sync_folder(runs_dir)
        except OSError as error:
            raise ConfigError(f"{run.path}: cannot make the run's folder: {error.strerror}") from error
        return run

    @property
    def run_id(self) -> str:
        """The run's ULID."""
        return self.path.name

    @property
    def log(self) -> Path:
        """The log of facts, orders and outcomes."""
        return self.path / "facts.log"

    @property
    def actions(self) -> Path:
        """The action socket of a run that is going."""
        return self.path / "actions.sock"

    @property
    def started(self) -> Path:
        """The file that a run begins with."""
        return self.path / "_STARTED.json"

    @property
    def success(self) -> Path:
        """The file that a run ends with."""
        return self.path / "_SUCCESS.json"

    def table(self, name: str) -> Path:
        """Return the file of table *name*."""
        return self.path / f"{name}.parquet"

    def start(self) -> RunStart | None:
        """Return what the run began with; None when the folder is not a run's."""
        return _read(self.started, RunStart)

    def end(self) -> RunEnd | None:
        """Return how the run ended; None while it has not."""
        return _read(self.success, RunEnd)

    def close(self, end: RunEnd) -> None:
        """Note that every table is in place; raises OSError."""
        write_whole(self.success, lambda file: file.write(_pretty(end)))


class Listing(NamedTuple):
    """A run as `list_runs` finds it."""

    run: RunDir
    name: str
    status: Literal["finished", "failed", "interrupted", "running", "unfinished"]
    verdict: Literal["VALID", "INVALID"] | None
    """None for a run without tables."""
    label: str | None
    """What was typed, see `RunStart.label`."""


def list_runs(runs_dir: Path) -> list[Listing]:
    """Return every run below *runs_dir*, oldest first; none when there is no such folder."""
    if not runs_dir.is_dir():
        return []
    found = (_listing(RunDir(path)) for path in sorted(runs_dir.iterdir()))
    return [listing for listing in found if listing is not None]


def find_run(runs_dir: Path, wanted: str = "latest") -> Listing:
    """Return the run that *wanted* names: "latest" with tables, a ULID, or its beginning or end.

    Raises ConfigError when no run or more than one fits.
    """
    listings = list_runs(runs_dir)
    if wanted == "latest":
        fitting = [listing for listing in listings if listing.verdict is not None][-1:]
    else:
        key = wanted.upper()
        fitting = [
            each for each in listings if each.run.run_id.startswith(key) or each.run.run_id.endswith(key)
        ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        named = wanted or repr(wanted)
        raise ConfigError(
            f"run {named}: {counted(len(fitting), 'run')} in {runs_dir} fit; give more of the id"
        )
    if not listings:
        raise ConfigError(
            f"run {wanted}: no run in {runs_dir} yet; vertumnus +experiment=tool_agent makes one"
        )
    newest = ", ".join(listing.run.run_id for listing in listings[-3:])
    killed = any(listing.status == "unfinished" for listing in listings)
    hint = "; killed runs get their tables from: vertumnus salvage" if killed else ""
    raise ConfigError(f"run {wanted}: no such finished run in {runs_dir}; the newest are: {newest}{hint}")


def may_name_run(word: str) -> bool:
    """Return whether *word* could be a run's id, or its beginning or end: a ULID has no I, L, O or U."""
    return word == "latest" or (len(word) <= 26 and word.isalnum() and not set(word.upper()) & set("ILOU"))


def _listing(run: RunDir) -> Listing | None:
    start = run.start()
    if start is None:
        return None
    end = run.end()
    if end is not None:
        return Listing(run, start.name, end.status, end.verdict, start.label)
    return Listing(run, start.name, "running" if is_locked(run.log) else "unfinished", None, start.label)


def _pretty(value: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _read(path: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
