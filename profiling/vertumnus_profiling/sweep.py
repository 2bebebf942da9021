"""Queue-free prefills on the live engine, one degree's ranks after the other's (sec. 3.2)."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import median

from msgspec import structs
from numpy import integer
from numpy.typing import NDArray

from vertumnus.config import RunConfig
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import RequestId, Tokens
from vertumnus.live.bench import DECODE_TOKENS, Bench, Point, StepTiming
from vertumnus.live.config import LiveConfig, ModelConfig
from vertumnus.live.engine import LiveEngine
from vertumnus.live.machine import others_share, read_cpu, usable_cores
from vertumnus.live.plan import LivePlan, make_plan
from vertumnus.workers.config import DecodeConfig
from vertumnus_profiling.grid import Size, SweepPoint
from vertumnus_profiling.samples import SampleFile, StepSample, TailSample
from vertumnus_profiling.schedule import Schedule

SAMPLE_S = 0.3
"""A sample is as many prefills as this holds: the kernel counts others' CPU time in ticks of 10 ms [s]."""
YARDSTICK = Size(512, 0)
"""The prefill that all others are measured in: long enough to be steady, short enough to be had often."""


def plan_for(
    config: RunConfig, model: ModelConfig, live: LiveConfig, degree: int, longest: Tokens
) -> LivePlan:
    """Return the plan of one worker of *degree* with room for prompts of *longest* tokens.

    Raises ConfigError when this machine cannot run it.
    """
    block_tokens = config.workload.scaled_block_tokens
    cluster = structs.replace(
        config.cluster,
        gpus=degree,
        degrees=(degree,),
        composition={degree: 1},
        blocks_per_rank=blocks_for(blocks_for(longest, block_tokens), degree),
        decode=DecodeConfig(ranks=1, slots_per_rank=1, tokens_per_rank=longest + DECODE_TOKENS),
    )
    return make_plan(model, live, cluster, block_tokens, config.seed)


class Stopwatch:
    """Times samples on an engine that does nothing else."""

    def __init__(self, engine: LiveEngine, longest: Tokens) -> None:
        self._engine = engine
        self._bench = Bench(engine, longest)
        self._worker: CpGroup = engine.plan.workers[0]
        self._warm: set[Size] = set()

    def steps(self, size: Size) -> StepSample:
        """Time prefills of *size*. Raises VertumnusError when one fails."""
        for new in {size, YARDSTICK} - self._warm:  # the first prefill of a size allocates
            self._bench.time_step(Point(self._worker, *new))
            self._warm.add(new)
        point, yardstick = Point(self._worker, *size), Point(self._worker, *YARDSTICK)
        with self._watching() as others:
            until = time.monotonic() + SAMPLE_S
            timings: list[StepTiming] = []
            yards = [self._bench.time_step(yardstick)]
            while not timings or time.monotonic() < until:
                timings.append(self._bench.time_step(point))
                yards.append(self._bench.time_step(yardstick))
        return step_sample(self._worker.degree, size, timings, yards, others())

    def tail(self, input_tokens: Tokens) -> TailSample:
        """Time a hand-off of *input_tokens* and decoding. Raises VertumnusError when it fails."""
        with self._watching() as others:
            timing = self._bench.time_tail(self._worker, input_tokens)
        return TailSample(input_tokens, timing.handoff_s, timing.whole_s, others())

    @contextmanager
    def _watching(self) -> Iterator[Callable[[], float | None]]:
        """Yield what returns the share of the cores that others used from the beginning to the end."""
        pids, cores = [os.getpid(), *self._engine.pids], usable_cores()
        before, after = read_cpu(pids), None
        yield lambda: others_share(before, after, cores)
        after = read_cpu(pids)


def step_sample(
    degree: int,
    size: Size,
    timings: Sequence[StepTiming],
    yards: Sequence[StepTiming],
    others: float | None,
) -> StepSample:
    """Return what *timings* say, each of which was taken between two of *yards*."""
    beside = list(zip(timings, pairwise(yards), strict=True))
    return StepSample(
        degree=degree,
        uncached=size.uncached,
        cached=size.cached,
        steps=len(timings),
        wall_s=median(timing.wall_s for timing in timings),
        wall_ratio=median(t.wall_s / (a.wall_s + b.wall_s) * 2 for t, (a, b) in beside),
        wall_yard_s=median(yard.wall_s for yard in yards),
        cpu_s=median(timing.cpu_per_rank_s for timing in timings),
        cpu_ratio=median(
            t.cpu_per_rank_s / (a.cpu_per_rank_s + b.cpu_per_rank_s) * 2 for t, (a, b) in beside
        ),
        cpu_yard_s=median(yard.cpu_per_rank_s for yard in yards),
        others=others,
    )


@contextmanager
def stopwatch(plan: LivePlan, longest: Tokens) -> Iterator[Stopwatch]:
    """Start the ranks of *plan*, yield a stopwatch on them, and stop them."""
    engine = LiveEngine(plan, _no_prompt, _discard)
    try:
        engine.start()
        yield Stopwatch(engine, longest)
    finally:
        engine.close()


def sweep_steps(
    watch: Stopwatch, schedule: Schedule, file: SampleFile, show: Callable[[int], object]
) -> None:
    """Take samples until *schedule* has enough; each is kept in *file* at once."""
    before = schedule.done  # of an earlier start
    point: SweepPoint | None
    while (point := schedule.next()) is not None:
        sample = watch.steps(Size(point.uncached, point.cached))
        file.append(sample)
        schedule.note(sample)
        show(schedule.done - before)


def sweep_tails(watch: Stopwatch, missing: Sequence[Tokens], file: SampleFile) -> None:
    """Time the hand-offs of *missing* lengths, one sample for each entry."""
    for input_tokens in missing:
        file.append(watch.tail(input_tokens))


def missing_tails(samples: Sequence[TailSample], sizes: Sequence[Size], repeats: int) -> list[Tokens]:
    """Return the lengths whose hand-off is still to be timed: the shortest and longest, *repeats* times."""
    lengths = sorted({min(sizes).uncached, max(sizes).uncached})
    known = [sample.input_tokens for sample in samples]
    return [length for turn in range(repeats) for length in lengths if known.count(length) <= turn]


def _no_prompt(request_id: RequestId) -> NDArray[integer]:
    raise KeyError(request_id)  # the stopwatch brings its own prompts


def _discard(request_id: RequestId, tokens: tuple[int, ...]) -> None:
    """Nobody reads what is decoded here."""
