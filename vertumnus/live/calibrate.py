"""A quick calibration on the running engine, before its clock starts: this machine's own profile.

Every degree that the ranks can form is timed alone, one step at a time, so the times are queue-free even
where ranks outnumber cores. The fastest time of each point counts, and rounds that others disturbed are
followed by more: a fit to disturbed times is junk.
"""

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import SECOND, Tokens
from vertumnus.domain.wording import counted
from vertumnus.live.bench import Bench, Point, StepTiming, TailTiming, points_of
from vertumnus.live.engine import LiveEngine
from vertumnus.live.fit import Fit, TimedPrefill, fit_prefill_time
from vertumnus.live.hardware import hardware_of, shared_cores
from vertumnus.live.machine import others_share, read_cpu, usable_cores
from vertumnus.live.plan import LivePlan
from vertumnus.live.rank_pool import FIRST_EPOCH
from vertumnus.live.tail import fastest_tail, tail_through

BUSY_SHARE = 0.15
"""Share of the cores in others' use above which a round does not count as a repeat."""

ENOUGH_S = 6.0
"""No further round is begun after this, quiet or not [s]."""


class Calibration(NamedTuple):
    """What this machine takes for a prefill, and what it was like while that was measured."""

    profile: ModelProfile
    fit: Fit
    cpu: PrefillTimeModel
    """CPU time of one rank of the degree in a prefill; `cpu_s` has that of all."""
    cores: int
    """Cores that the ranks share."""
    busy_share: float | None
    """Share of the cores that others used in the quietest round; None where the system does not tell."""

    def cpu_s(self, degree: int, uncached: Tokens, cached: Tokens) -> float:
        """Return the CPU time of all ranks of one prefill together [s]."""
        return degree * self.cpu.predict(degree, uncached, cached) / SECOND


class Round(NamedTuple):
    """Everything measured once."""

    steps: list[StepTiming]
    tails: list[TailTiming]
    busy_share: float | None


def calibrate(engine: LiveEngine) -> Calibration:
    """Measure on *engine*, started in `CALIBRATION_EPOCH` and idle, its clock not yet in use.

    Its ranks are the plan's workers in `FIRST_EPOCH` afterwards.
    Raises VertumnusError when a rank is lost or a step fails meanwhile, ConfigError when no point fits.
    """
    points = points_of(engine.plan)
    client = engine.client
    lookup, sink = client.prompts, client.on_tokens
    client.on_tokens = lambda request_id, tokens: None
    try:
        bench = Bench(engine, max(point.uncached + point.cached for point in points))
        rounds = _measure(engine, bench, points)
        bench.form(engine.plan.workers, FIRST_EPOCH)
    finally:
        client.prompts, client.on_tokens = lookup, sink
    return conclude(engine.plan, points, rounds)


def _measure(engine: LiveEngine, bench: Bench, points: Sequence[Point]) -> list[Round]:
    """Return as many quiet rounds as configured and the disturbed ones between; fewer when slow."""
    started, rounds, quiet = time.monotonic(), [_round(engine, bench, points)], 0
    while quiet < engine.plan.live.calibration.repeats and time.monotonic() - started < ENOUGH_S:
        rounds.append(_round(engine, bench, points))
        quiet += (rounds[-1].busy_share or 0.0) <= BUSY_SHARE
    return rounds


def _round(engine: LiveEngine, bench: Bench, points: Sequence[Point]) -> Round:
    pids = [os.getpid(), *engine.pids]
    before = read_cpu(pids)
    steps = [bench.time_step(point) for point in points]
    tails = [bench.time_tail(points[0].worker, tokens) for tokens in _tail_lengths(points)]
    return Round(steps, tails, others_share(before, read_cpu(pids), usable_cores()))


def _tail_lengths(points: Sequence[Point]) -> list[Tokens]:
    """Return the shortest and the longest prompt for the first worker: a line needs two ends."""
    lengths = {point.uncached for point in points if point.worker == points[0].worker}
    return sorted({min(lengths), max(lengths)})


def conclude(plan: LivePlan, points: Sequence[Point], rounds: Sequence[Round]) -> Calibration:
    """Return what *rounds* over *points* say: the fastest time of each counts."""
    timings = list(zip(*(one.steps for one in rounds), strict=True))
    fit = _fit(points, [min(timing.wall_s for timing in of_point) for of_point in timings])
    cpu = _fit(points, [min(timing.cpu_per_rank_s for timing in of_point) for of_point in timings])
    tails = [fastest_tail(of_length) for of_length in zip(*(one.tails for one in rounds), strict=True)]
    busy_share = min((one.busy_share for one in rounds if one.busy_share is not None), default=None)
    profile = _profile(plan, fit, cpu, tails, _provenance(plan, fit, len(points), len(rounds), busy_share))
    return Calibration(
        profile=profile,
        fit=fit,
        cpu=PrefillTimeModel.of(cpu.coefficients, profile.degrees),
        cores=usable_cores(),
        busy_share=busy_share,
    )


def _fit(points: Sequence[Point], seconds: Sequence[float]) -> Fit:
    return fit_prefill_time(
        [
            TimedPrefill(point.worker.degree, point.uncached, point.cached, taken)
            for point, taken in zip(points, seconds, strict=True)
        ]
    )


def _profile(
    plan: LivePlan, fit: Fit, cpu: Fit, tails: Sequence[TailTiming], provenance: str
) -> ModelProfile:
    return ModelProfile(
        model=plan.model.name,
        hardware=hardware_of(plan),
        provenance=provenance,
        degrees=plan.lattice.degrees,  # one that no worker can have is predicted by g*log2(C)
        prefill=fit.coefficients,
        kv_bytes_per_token=plan.model.kv_bytes_per_token,
        dtype=plan.model.dtype,
        block_tokens=plan.block_tokens,
        cores=shared_cores(plan),
        cpu=cpu.coefficients,
        **tail_through(tails[0], tails[-1])._asdict(),
    )


def _provenance(plan: LivePlan, fit: Fit, points: int, rounds: int, busy_share: float | None) -> str:
    unmeasured = sorted(set(plan.lattice.degrees) - {group.degree for group in plan.lattice.groups()})
    guessed = (
        f"; no worker has degree {', '.join(map(str, unmeasured))}, predicted by log2 C" if unmeasured else ""
    )
    others = "" if busy_share is None else f"; others used {busy_share:.0%} of the cores in the quietest"
    return (
        f"measured on this machine at the start of the run: {counted(points, 'point')}, fastest of "
        f"{counted(rounds, 'round')}; fit error {fit.mean_error:.1%} mean, "
        f"{fit.p90_error:.1%} P90{others}{guessed}"
    )
