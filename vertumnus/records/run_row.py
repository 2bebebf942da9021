"""A run as one row: what it was, how it ended, what it measured."""

import hashlib
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.records.log import LogHeader
from vertumnus.records.metrics import Metrics
from vertumnus.records.provenance import RunStart
from vertumnus.records.verdict import Verdict

RunStatus: TypeAlias = Literal["finished", "failed", "interrupted"]
"""Ended by itself, by an error, or from outside."""


class RunRow(Struct, frozen=True, kw_only=True):
    """One row of the runs table."""

    start: RunStart
    header: LogHeader
    status: RunStatus
    verdict: Verdict
    metrics: Metrics
    wall_s: float | None
    """From the first arrival's scheduling to the last end; None when the run was killed."""
    sim_ns: Nanoseconds
    """The run's clock at its last fact."""

    @property
    def sim_requests_per_s(self) -> float | None:
        """Requests simulated per second of wall time; None in live runs."""
        if self.header.backend != "sim" or not self.wall_s:
            return None
        return self.metrics.requests / self.wall_s

    @property
    def execution(self) -> str:
        """Whether the prefills were computed or only timed."""
        return "simulated" if self.header.backend == "sim" else "executed"

    @property
    def sim_s(self) -> float:
        """The run's clock at its last fact [s]."""
        return to_seconds(self.sim_ns)


def canonical_json(value: Any) -> str:
    """Return *value* as JSON with sorted keys: equal values give equal text."""
    return msgspec.json.encode(value, order="sorted").decode()


def config_hash(config: dict[str, Any]) -> str:
    """Return the SHA-256 of *config*, by which equal configurations are found [hex]."""
    return hashlib.sha256(canonical_json(config).encode()).hexdigest()
