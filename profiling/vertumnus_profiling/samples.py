"""What a sweep has measured, kept line by line as it comes, so that a second start continues.

One JSON object a line: first what was measured on, then samples. A line that a killed sweep left
unfinished is dropped; everything before it counts.
"""

import fcntl
import hashlib
import os
from io import BufferedRandom
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Tokens
from vertumnus.live.config import ModelConfig


class SweepSettings(Struct, frozen=True, kw_only=True):
    """What must be the same for samples to be of one kind."""

    model: ModelConfig
    hardware: str
    device: str
    block_tokens: Tokens
    weights: str | None
    """Folder of the weights; None where they were drawn from the seed."""
    versions: dict[str, str]
    """Of vertumnus, Python and torch."""

    @property
    def digest(self) -> str:
        """Eight letters that stand for these settings."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:8]


class Header(Struct, frozen=True, tag="sweep", tag_field="kind"):
    """The first line."""

    settings: SweepSettings
    started_at: str
    """ISO date, UTC."""


class StepSample(Struct, frozen=True, tag="step", tag_field="kind"):
    """A few prefills of one size on idle ranks, each between two of the yardstick's."""

    degree: int
    uncached: Tokens
    cached: Tokens
    steps: int
    """Prefills in the sample."""
    wall_s: float
    """Wall time of the slowest rank, median over the prefills."""
    wall_ratio: float
    """The same in yardsticks: each prefill over the mean of the two beside it, median."""
    wall_yard_s: float
    """The yardstick's own time meanwhile, median."""
    cpu_s: float
    """CPU time of a rank, median over the prefills."""
    cpu_ratio: float
    cpu_yard_s: float
    others: float | None
    """Share of the cores that others used meanwhile; None where the system does not tell."""


class TailSample(Struct, frozen=True, tag="tail", tag_field="kind"):
    """A hand-off and the decode steps after it."""

    input_tokens: Tokens
    handoff_s: float
    whole_s: float
    others: float | None


Sample: TypeAlias = StepSample | TailSample

_decoder: msgspec.json.Decoder[Header | StepSample | TailSample] = msgspec.json.Decoder(
    Header | StepSample | TailSample
)


class SampleFile:
    """The samples of one sweep; only one program at a time has it open."""

    def __init__(self, folder: Path, settings: SweepSettings, today: str) -> None:
        """Open the file of *settings* in *folder*, which is made; raises ConfigError, OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"points-{settings.digest}.partial.jsonl"
        self._file = _locked(self.path)
        try:
            self.header, self.samples = self._read(Header(settings, today))
        except BaseException:
            self.close()
            raise

    def append(self, sample: Sample) -> None:
        """Keep *sample*; it has reached the disk when this returns."""
        self._write(sample)
        self.samples.append(sample)

    def finish(self) -> Path:
        """Close the file under the name that finished sweeps have, and return that."""
        finished = self.path.with_name("points.jsonl")
        os.replace(self.path, finished)
        self.close()
        return finished

    def close(self) -> None:
        """Let others have the file."""
        self._file.close()

    def _read(self, header: Header) -> tuple[Header, list[Sample]]:
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        self._file.seek(len(whole))
        try:
            lines = [_decoder.decode(line) for line in whole.splitlines()]
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self.path}: not the samples of a sweep ({error}); move it away") from error
        if not lines:
            self._write(header)
            return header, []
        if not isinstance(lines[0], Header):
            raise ConfigError(f"{self.path}: does not begin with what was measured on; move it away")
        return lines[0], [line for line in lines if not isinstance(line, Header)]

    def _write(self, line: Header | Sample) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _locked(path: Path) -> BufferedRandom:
    file = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115  (closed by its owner)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise ConfigError(
            f"{path}: another vertumnus profile is measuring into it; wait for its end"
        ) from error
    return file
