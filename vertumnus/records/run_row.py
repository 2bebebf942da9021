"""A run as one row: what it was, how it ended, what it measured."""

import hashlib
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from ulid import ULID

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
    others_cpu_share: float | None = None
    """Share of the machine's cores that other programs used meanwhile; None where nobody looked."""

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
    def started_at(self) -> datetime:
        """When the run was given its id, a ULID [UTC]."""
        return ULID.from_str(self.start.run_id).datetime.replace(tzinfo=None)

    @property
    def never_arrived(self) -> int | None:
        """Planned requests that an end before its time kept from arriving."""
        planned = self.start.planned
        return None if planned is None else planned.requests - self.metrics.requests

    def setting(self, *path: str) -> str | None:
        """Return the config's text at *path*; None where it has none."""
        value: Any = self.header.config
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, str) else None

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
