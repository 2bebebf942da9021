"""What the figures' report follows from, each part as a digest: where all are equal, it would come out equal.

Small files are told by their content. Those of runs and traces are told by size and by both times that the
file system keeps: the second, of the inode, no copy and no ``touch`` can give back.
"""

import hashlib
import os
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import distributions
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from vertumnus.commandline.conf_folders import packaged_folder, user_folder
from vertumnus.commandline.figure_wanted import Wanted
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import RunDir
from vertumnus.records.sweeps import SweepRecord, find_sweep

ASKED = "the command"
"""The part that is no change of anything: another report was asked for."""

_RESOLVER = re.compile(r"\$\{[^{}]*:|hydra\.searchpath")
"""What a config takes from elsewhere: ``${oc.env:HOME}``, ``${now:%H}``, a folder of the user's naming."""

Named = tuple[str, bytes]


def given(wanted: Wanted) -> dict[str, str] | None:
    """Return the digest of each part that a report begins from; None where no file tells what configs say."""
    configs = list(_configs())
    texts = [*wanted.overrides, *(content.decode(errors="replace") for _, content in configs)]
    if any(_RESOLVER.search(text) for text in texts):
        return None
    return {
        ASKED: digest([("", wanted.text.encode())]),
        "the code": digest(_below(files("vertumnus"), (".py", ".sql"))),
        "installed packages": digest((name, b"") for name in _installed()),
        "configs": digest(configs),
    }


def of_traces(traces: Iterable[str]) -> dict[str, str]:
    """Return the digest of the trace files that jobs are served from."""
    return {"trace files": digest((trace, _stamp(Path(trace))) for trace in traces)}


def of_runs(runs_dir: Path, sweeps: Iterable[str]) -> dict[str, str]:
    """Return the digests of the records of *sweeps* below *runs_dir*, and of the runs that they may have."""
    records = [_record(runs_dir, sweep) for sweep in sweeps]
    jobs = {(job.config_hash, job.code_hash) for record in records if record for job in record.jobs}
    return {
        "sweeps": digest(("", msgspec.json.encode(record)) for record in records),
        "runs": digest(_run_files(runs_dir, jobs)),
    }


def of_report(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the digest of a report's files, by name."""
    return {"the report": digest(sorted(contents.items()))}


def of_report_in(out: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the same of the files of *names* as they are in the folder *out*."""
    return of_report({name: _content(out / name) for name in names})


def digest(named: Iterable[Named]) -> str:
    """Return the SHA-256 of contents with their names [hex, 16 digits]."""
    whole = hashlib.sha256()
    for name, content in named:
        whole.update(os.fsencode(name) + f"\0{len(content)}\0".encode() + content)
    return whole.hexdigest()[:16]


def _configs() -> Iterator[Named]:
    yield from _below(packaged_folder(), (".yaml",))
    folder = user_folder()
    if folder is not None:
        yield from sorted(_linked_too(folder))


def _linked_too(folder: Path) -> Iterator[Named]:
    """Yield the folders and the YAML files below *folder*, links followed as Hydra does, each place once."""
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        yield place, b""
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        files = [Path(place, name) for name in names if name.endswith(".yaml")]
        yield from ((str(file), _content(file)) for file in files)


def _below(folder: Traversable, endings: tuple[str, ...], place: str = "") -> Iterator[Named]:
    """Yield the files of these *endings* below *folder*, by name."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _below(entry, endings, f"{place}{entry.name}/")
        elif entry.name.endswith(endings):
            yield f"{place}{entry.name}", entry.read_bytes()


def _installed() -> list[str]:
    """Return Python and every installed distribution with its version: Hydra, DuckDB, Matplotlib, ..."""
    there = {f"{each.name} {each.version}" for each in distributions()}
    return [platform.python_version(), *sorted(there)]


def _record(runs_dir: Path, sweep: str) -> SweepRecord | None:
    """Return the record of *sweep*; None where it is gone or damaged."""
    try:
        return find_sweep(runs_dir, sweep)
    except ConfigError:
        return None


def _run_files(runs_dir: Path, jobs: Collection[tuple[str, str]]) -> Iterator[Named]:
    """Yield every file of the runs that have the hashes of one of *jobs*, ended or not."""
    for folder in sorted(runs_dir.iterdir()) if runs_dir.is_dir() else ():
        start = RunDir(folder).start()
        if start is not None and (start.asked_hash, start.code_hash) in jobs:
            for file in sorted(folder.iterdir()):
                yield f"{folder.name}/{file.name}", _stamp(file)


def _stamp(file: Path) -> bytes:
    """Return size and times of *file*, nothing where there is none."""
    try:
        stat = file.stat()
    except OSError:
        return b""
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}".encode()


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
