"""What a sweep is remembered by: which jobs it has, so that it can go on and be compared.

    runs/sweeps/<sweep>.json      SweepRecord

The id follows from the jobs and the code, so that the same command is the same sweep. Its runs lie
beside all others; a job's runs are those with its configuration and its code.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.atomic import write_whole

FOLDER = "sweeps"


class SweepJob(Struct, frozen=True, kw_only=True):
    """One run that a sweep asks for."""

    words: tuple[str, ...]
    """Its overrides, one value for each key."""
    config_hash: str
    """The asked_hash of its runs."""
    code_hash: str
    is_live: bool


class SweepRecord(Struct, frozen=True, kw_only=True):
    """A sweep as it was started last."""

    sweep: str
    words: tuple[str, ...]
    """The overrides as typed, with the values to sweep over."""
    jobs: tuple[SweepJob, ...]
    only: tuple[str, ...] = ()
    """What jobs had to have, of those that the words ask for."""


def sweep_id(name: str, jobs: Sequence[SweepJob]) -> str:
    """Return the id of the sweep of *jobs*: the experiment's name, and a hash of what they run."""
    told = sorted(f"{job.config_hash} {job.code_hash}" for job in jobs)
    readable = "".join(letter if letter.isalnum() else "_" for letter in name)
    return f"{readable}-{hashlib.sha256(' '.join(told).encode()).hexdigest()[:8]}"


def write_sweep(runs_dir: Path, record: SweepRecord) -> None:
    """Keep *record* below *runs_dir*. Raises ConfigError when that is not possible."""
    file = runs_dir / FOLDER / f"{record.sweep}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        pretty = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
        write_whole(file, lambda out: out.write(pretty))
    except OSError as error:
        raise ConfigError(f"{file}: cannot keep the sweep: {error.strerror}") from error


def list_sweeps(runs_dir: Path) -> list[str]:
    """Return the ids of the sweeps of *runs_dir*, the latest last."""
    files = (runs_dir / FOLDER).glob("*.json")
    return [file.stem for file in sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))]


def find_sweep(runs_dir: Path, wanted: str) -> SweepRecord | None:
    """Return the sweep that *wanted* names: its id, the beginning of one, or "latest"; None when none does.

    Raises ConfigError when more than one fits, or its record cannot be read.
    """
    known = list_sweeps(runs_dir)
    fitting = known[-1:] if wanted == "latest" else [each for each in known if each.startswith(wanted)]
    if wanted in fitting:
        fitting = [wanted]
    if not fitting:
        return None
    if len(fitting) > 1:
        raise ConfigError(
            f"sweep {wanted}: {counted(len(fitting), 'sweep')} in {runs_dir} fit: {', '.join(fitting)}"
        )
    file = runs_dir / FOLDER / f"{fitting[0]}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=SweepRecord)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{file}: is no readable sweep: {error}") from error
