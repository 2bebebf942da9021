"""A job of a sweep, and what became of it."""

from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.config import RunConfig, plain_config
from vertumnus.live.config import LiveConfig
from vertumnus.records.provenance import code_hash
from vertumnus.records.run_row import config_hash
from vertumnus.records.sweeps import SweepJob

Status: TypeAlias = Literal["finished", "failed", "interrupted", "bad input", "done before"]
"""A run's own status, or why there is no new one."""


class Job:
    """One run that a sweep asks for."""

    def __init__(self, words: tuple[str, ...], config: RunConfig) -> None:
        """*words* are the overrides that *config* comes from."""
        self.words = words
        self.config = config

    @property
    def is_live(self) -> bool:
        """Whether its prefills are computed here, not timed."""
        return isinstance(self.config.backend, LiveConfig)

    @cached_property
    def config_hash(self) -> str:
        """Of the configuration, as the run will store it as asked for."""
        return config_hash(plain_config(self.config))

    @property
    def code_hash(self) -> str:
        """Of the code that its numbers depend on."""
        return code_hash(self.is_live)

    @property
    def traces(self) -> list[str]:
        """The trace files that it reads."""
        paths = (self.config.workload.path, getattr(self.config.initial, "path", None))
        return [path for path in paths if path is not None]

    @property
    def record(self) -> SweepJob:
        """What is kept of it in the sweep's record."""
        return SweepJob(
            words=self.words, config_hash=self.config_hash, code_hash=self.code_hash, is_live=self.is_live
        )


class Ending(NamedTuple):
    """How a job ended."""

    status: Status
    run_id: str | None = None
    verdict: str | None = None
    problems: tuple[str, ...] = ()
    """Why there is no run, or what a failed process said last."""
