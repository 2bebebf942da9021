"""What runs copied between workers, and what a millisecond that the copies saved did cost."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from vertumnus.report.store import query


class Traffic(NamedTuple):
    """Copies and deletions of one run, and the time its requests took; of several runs the means."""

    replicated_bytes: float = 0.0
    """For replicas within a degree and across degrees."""
    fetched_bytes: float = 0.0
    """For requests that were placed where blocks were missing: pulls and reconciliation."""
    reclaimed_blocks: float = 0.0
    ttft_s: float = 0.0
    """Of all finished requests together, those of the warm-up too [s]."""

    @property
    def copied_bytes(self) -> float:
        """What travelled, whatever for."""
        return self.replicated_bytes + self.fetched_bytes


def find_traffic(runs_dir: Path, run_ids: Collection[str]) -> dict[str, Traffic]:
    """Return the traffic of each of *run_ids*."""
    sql = """
        WITH copies AS (
            SELECT run_id,
                   sum(payload_bytes) FILTER (purpose IN ('inter', 'intra')) AS replicated,
                   sum(payload_bytes) FILTER (purpose IN ('pull', 'reconcile')) AS fetched,
                   sum(blocks) FILTER (purpose = 'reclaim') AS reclaimed
            FROM cache_ops GROUP BY run_id
        )
        SELECT run_id, any_value(replicated), any_value(fetched), any_value(reclaimed), sum(ttft_s)
        FROM requests LEFT JOIN copies USING (run_id)
        WHERE status = 'finished'
        GROUP BY run_id
    """
    rows = query(runs_dir, sql, only=set(run_ids)).rows
    return {run_id: Traffic(*(float(value or 0.0) for value in values)) for run_id, *values in rows}


def mean_traffic(traffic: Collection[Traffic]) -> Traffic:
    """Return the means of at least one run."""
    return Traffic(*(sum(values) / len(traffic) for values in zip(*traffic, strict=True)))


def bytes_per_saved_ms(pairs: Iterable[tuple[Traffic, Traffic]]) -> float | None:
    """Return the bytes copied beyond those of the other run for each millisecond of TTFT that it saved.

    *pairs* are (with copies, without) over the same requests. A mean over all their requests: None when
    the copies saved nothing; below 0 when less was copied with replicas, since fewer blocks were pulled.
    """
    extra = saved_ms = 0.0
    for ours, theirs in pairs:
        extra += ours.copied_bytes - theirs.copied_bytes
        saved_ms += 1_000.0 * (theirs.ttft_s - ours.ttft_s)
    return extra / saved_ms if saved_ms > 0.0 else None
