"""What a run's timeline shows (Fig. 13): composition, arrivals, TTFT and transitions over the run's time."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertumnus.domain.errors import ConfigError
from vertumnus.report.phases import phases
from vertumnus.report.reports import answer_report
from vertumnus.report.store import query

OUT_OF_SERVICE = 0
"""Stands for a degree where ranks serve nobody."""

BINS = 60
"""Parts that the run's time is cut into for rates and percentiles; each is at least a second long."""

Floats = NDArray[np.float64]


class Band(NamedTuple):
    """The ranks of one degree over time."""

    degree: int
    """`OUT_OF_SERVICE` for those that serve nobody."""
    ranks: Floats
    """From each instant of the timeline on, shape (T,)."""


class Bins(NamedTuple):
    """Requests by the time of their arrival, N bins; NaN where there is nothing to tell."""

    edges_s: Floats
    """Shape (N + 1,)."""
    rate: Floats
    """Arrivals [requests/s]."""
    p50_s: Floats
    """Median TTFT of those that finished."""
    p90_s: Floats


class Transition(NamedTuple):
    """A split or merge."""

    t_s: float
    """When it began."""
    kind: str
    move: str
    """Its workers before and after, "0x1 + 1x1 -> 0x2"; with its outcome unless it was committed."""
    drain_s: float | None
    switch_s: float | None


class Timeline(NamedTuple):
    """One run over its own time."""

    run: dict[str, Any]
    """Its row of the table `runs`."""
    t_s: Floats
    """Instants at which the composition changed, from 0 to the run's end, shape (T,)."""
    bands: tuple[Band, ...]
    """By degree, ascending, those out of service last."""
    bins: Bins
    transitions: tuple[Transition, ...]
    phases_s: tuple[float, ...]
    """Where one phase of the workload ends and another begins."""


def load_timeline(runs_dir: Path, run_id: str) -> Timeline:
    """Return the timeline of the ended run *run_id*. Raises ConfigError when nothing was recorded of it."""
    found = query(runs_dir, "FROM runs WHERE run_id = $run_id", {"run_id": run_id}, only=[run_id]).dicts()
    lives = answer_report(runs_dir, "worker_lives", run_id).dicts()
    requests = _requests(runs_dir, run_id)
    if not found or not lives or not len(requests):
        raise ConfigError(f"run {run_id}: it served nothing, so that there is no timeline")
    run = found[0]
    t_s, bands = _composition(lives)
    return Timeline(
        run,
        t_s,
        bands,
        _binned(requests),
        tuple(_transitions(runs_dir, run_id)),
        _phase_bounds(run),
    )


def _requests(runs_dir: Path, run_id: str) -> Floats:
    """Return arrival and TTFT of every request, NaN without a first token, shape (R, 2) [s]."""
    sql = "SELECT arrival_s, ttft_s FROM requests WHERE run_id = $run_id ORDER BY arrival_s"
    rows = query(runs_dir, sql, {"run_id": run_id}, only=[run_id]).rows
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def _composition(lives: Sequence[dict[str, Any]]) -> tuple[Floats, tuple[Band, ...]]:
    """Return the instants at which the pool changed, and the ranks of each degree from each of them on."""
    stretches = [stretch for life in lives for stretch in _stretches(life)]
    t_s = np.array(sorted({bound for each in stretches for bound in (each.start_s, each.end_s)}))
    ranks: dict[int, Floats] = {}
    for each in stretches:
        band = ranks.setdefault(each.degree, np.zeros(len(t_s)))
        band[(t_s >= each.start_s) & (t_s < each.end_s)] += each.ranks
    for band in ranks.values():
        band[-1] = band[-2]  # the end of the run belongs to what was before it
    order = sorted(ranks, key=lambda degree: (degree == OUT_OF_SERVICE, degree))
    return t_s, tuple(Band(degree, ranks[degree]) for degree in order)


class _Stretch(NamedTuple):
    """A part of a worker's life, as one degree."""

    degree: int
    ranks: int
    start_s: float
    end_s: float


def _stretches(life: dict[str, Any]) -> Iterator[_Stretch]:
    degree, lost_s = life["cp_degree"], life["out_of_service_s"]
    yield _Stretch(degree, degree, life["start_s"], life["end_s"] if lost_s is None else lost_s)
    if lost_s is not None:
        yield _Stretch(OUT_OF_SERVICE, degree, lost_s, life["end_s"])


def _binned(requests: Floats) -> Bins:
    arrival_s, ttft_s = requests[:, 0], requests[:, 1]
    span_s = max(1.0, arrival_s[-1])
    edges_s = np.linspace(0.0, span_s, 1 + max(1, min(BINS, int(span_s))))
    place = np.clip(np.searchsorted(edges_s, arrival_s, side="right") - 1, 0, len(edges_s) - 2)
    counts = np.bincount(place, minlength=len(edges_s) - 1)
    finished = ~np.isnan(ttft_s)
    of_bin = [ttft_s[finished & (place == number)] for number in range(len(counts))]
    p50_s, p90_s = (
        np.array([np.quantile(each, share) if len(each) else np.nan for each in of_bin])
        for share in (0.5, 0.9)
    )
    return Bins(edges_s, counts / np.diff(edges_s), p50_s, p90_s)


def _transitions(runs_dir: Path, run_id: str) -> Iterator[Transition]:
    for row in answer_report(runs_dir, "reconfigs", run_id).dicts():
        outcome = "" if row["outcome"] == "committed" else f", {row['outcome']}"
        kind, _, workers = row["move"].partition(" ")
        yield Transition(row["t_s"], kind, workers + outcome, row["drain_s"], row["switch_s"])


def _phase_bounds(run: dict[str, Any]) -> tuple[float, ...]:
    """Return the phases' inner bounds; none without phases, or where arrivals were moved out of them."""
    try:
        stretches = phases(run["run_id"], json.loads(run["config"]))
    except ConfigError:
        return ()
    return tuple(each.end_s for each in stretches[:-1])
