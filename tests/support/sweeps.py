"""Sweeps to compare: runs of known TTFT, beside the record of what they were asked as."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.support.builders import a_request
from tests.support.recorded import a_header, a_life, a_merge, a_run, a_ulid, told_in_order
from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.units import SECOND
from vertumnus.records.planned import Planned
from vertumnus.records.run_row import config_hash
from vertumnus.records.sweeps import SweepJob, SweepRecord, sweep_id, write_sweep

REQUESTS = 4
SPACING_S = 10
"""Between two arrivals of a run [s]."""
BESIDES_S = 1.5
"""Queue and hand-off of every request: its TTFT is this and its prefill [s]."""


def a_config(policy: str, seed: int, /, phases: int = 2, **changes: Any) -> dict[str, Any]:
    """Return the plain config of a run of *phases* of 20 s each."""
    each = {"duration_s": 2.0 * SPACING_S, "rate": 0.1}
    return {
        "seed": seed,
        "policy": {"name": policy},
        "workload": {"name": "phases", "phases": [each] * phases, "start_s": 0.0},
        "arrival": {"process": "trace", "rate": None, "load": None, "time_scale": None},
        **changes,
    }


def a_timed_run(
    runs_dir: Path, number: int, words: Sequence[str], config: Mapping[str, Any], prefill_s: float, **how: Any
) -> str:
    """Leave a VALID run of REQUESTS requests, each prefilled in *prefill_s*, and return its id.

    *how*: backend, shift_s of all arrivals, the composition, whether the pool moves 5 s into the second
    phase, what is told *also*, and fields of the RunStart.
    """
    backend, shift_s = how.pop("backend", "sim"), how.pop("shift_s", 0)
    composition, with_move = how.pop("composition", None), how.pop("with_move", False)
    also = how.pop("also", [])
    arrivals = [(shift_s + SPACING_S * each) * SECOND for each in range(REQUESTS)]
    requests = [a_request(each, at) for each, at in enumerate(arrivals)]
    lives = [a_life(each, prefill_ns=round(prefill_s * SECOND), decode_ns=SECOND) for each in requests]
    started = {
        "overrides": tuple(words),
        "planned": Planned.of(requests),
        "asked_hash": config_hash(dict(config)),
        "code_hash": "code",
        **how,
    }
    header = replace(a_header(backend), config=dict(config), seed=config["seed"])
    if composition is not None:
        header = replace(header, composition=composition)
    moves = [a_merge(round((2 * SPACING_S + 5) * SECOND))] if with_move else []
    a_run(runs_dir, a_ulid(number), told_in_order([*lives, *moves, *also]), header, **started)
    return a_ulid(number)


def a_sweep(runs_dir: Path, prefill_s: Mapping[str, Sequence[float | None]]) -> str:
    """Leave a sweep of policies x seeds with the prefill times given; None: that run is missing."""
    cells = [(policy, seed, s) for policy, of in prefill_s.items() for seed, s in enumerate(of)]
    jobs = []
    for number, (policy, seed, seconds) in enumerate(cells):
        words, config = (f"policy={policy}", f"seed={seed}"), a_config(policy, seed)
        if seconds is not None:
            # the seed moves the arrivals, as a generator would
            a_timed_run(runs_dir, number, words, config, seconds, shift_s=seed)
        jobs.append(SweepJob(words=words, config_hash=config_hash(config), code_hash="code", is_live=False))
    sweep = sweep_id("trial", jobs)
    write_sweep(runs_dir, SweepRecord(sweep=sweep, words=("policy=a,b", "seed=0,1"), jobs=tuple(jobs)))
    return sweep


PAPERS = Composition(
    tuple(CpGroup(4 * n, 4) for n in range(4)) + tuple(CpGroup(16 + 8 * n, 8) for n in range(3))
)
SMALL = Composition(tuple(CpGroup(4 * n, 4) for n in range(10)))


def leave_runs(
    runs_dir: Path, adaptive_s: float = 2.0, kinds: tuple[str, ...] = ("brisk", "off"), phases: int = 2
) -> list[str]:
    """Leave two seeds of an adaptive controller and of two fixed compositions, and return their ids.

    Their requests come in the first two of the *phases*.
    """
    cells = [("brisk", PAPERS, adaptive_s), ("off", PAPERS, 3.0), ("off", SMALL, 4.0)]
    ids = []
    for name, composition, seconds in cells:
        if name not in kinds:
            continue
        for seed in (0, 1):
            config = a_config("paper", seed, phases, controller={"name": name, "window_s": 5.0})
            words = (f"controller={name}", f"cluster.composition={composition}", f"seed={seed}")
            # the second seed is slower for everybody
            factor = 1.0 + seed
            ttft_s = factor * (seconds + BESIDES_S) - BESIDES_S
            ids.append(
                a_timed_run(
                    runs_dir, len(ids), words, config, ttft_s, shift_s=seed, composition=composition,
                    with_move=name == "brisk",
                )
            )  # fmt: skip
    return ids
