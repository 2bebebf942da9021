"""How long ranks take to change workers, on the live engine: the switch of a split or merge (sec. 8).

From the control record to the last acknowledgement and the new workers' opening; draining comes before
it. Imports torch, so that its absence must be found out before this module is imported.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from random import Random

import numpy as np

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.facts import WorkerFormed
from vertumnus.domain.jobs import Adopted, StepDone, StepJob, StepWork
from vertumnus.domain.orders import AdoptEpoch, Drain, Reopen
from vertumnus.domain.units import Nanoseconds
from vertumnus.live.bench import slots_of
from vertumnus.live.config import MODEL_PRESETS, LiveConfig
from vertumnus.live.engine import LiveEngine
from vertumnus.live.plan import make_plan
from vertumnus.policy.reconfig.moves import apply, moves
from vertumnus.workers.config import ClusterConfig, DecodeConfig
from vertumnus.workers.fleet import Effects, Fleet
from vertumnus_profiling.bench.cp_pair import BLOCK_TOKENS
from vertumnus_profiling.bench.measure import Result, Settings, result

STEP_TOKENS = 16
"""Prompt that every new worker computes before it is switched again: ranks come out of real work."""

CLUSTER = ClusterConfig(
    gpus=4,
    degrees=(1, 2, 4),
    composition={4: 1},
    ranks_per_node=4,
    blocks_per_rank=8,
    decode=DecodeConfig(ranks=1, slots_per_rank=1, tokens_per_rank=2 * STEP_TOKENS),
)


def switch(settings: Settings) -> Iterator[Result]:
    """P50 and P99 of a switch of four prefill ranks of model nano, random moves through the lattice."""
    plan = make_plan(MODEL_PRESETS["nano"], LiveConfig(device="cpu"), CLUSTER, BLOCK_TOKENS, seed=0)
    prompt, count = np.zeros(STEP_TOKENS, dtype=np.int64), settings.size(1_000, 20)
    with closing(LiveEngine(plan, lambda request_id: prompt, lambda request_id, tokens: None)) as engine:
        engine.start()
        pool = SwitchedPool(engine)
        samples = [
            np.percentile([pool.switch_ns() for _ in range(count)], (50, 99)) / 1_000
            for _ in range(settings.repeats)
        ]
    for percentile, values in zip(("p50", "p99"), np.transpose(samples).tolist(), strict=True):
        yield result(f"switch/{percentile}", "us", values, count)


class SwitchedPool:
    """Idle workers on a started engine, split and merged one move after the other."""

    def __init__(self, engine: LiveEngine) -> None:
        self._engine = engine
        self._fleet = Fleet(CLUSTER, BLOCK_TOKENS)
        self._composition = CLUSTER.initial_composition()
        self._epoch = 0
        self._random = Random(0)

    def switch_ns(self) -> Nanoseconds:
        """Carry out a random legal move, then a step at each new worker; return the time of the switch.

        Raises VertumnusError when a rank does not adopt or compute.
        """
        move = self._random.choice(moves(self._composition, CLUSTER.lattice))
        for source in move.sources:
            self._fleet.carry_out(Drain(source), self._engine.now())
        self._epoch += 1
        started = time.perf_counter_ns()
        self._adopt(move.targets)
        took = time.perf_counter_ns() - started
        self._composition = apply(self._composition, move)
        self._compute(move.targets)
        return took

    def _adopt(self, workers: tuple[CpGroup, ...]) -> None:
        """Tell the ranks of *workers* the next epoch; return when all workers are open."""
        self._submit(self._fleet.carry_out(AdoptEpoch(workers, self._epoch), self._engine.now()))
        unformed = len(workers)
        while unformed:
            facts = self._fleet.conclude(self._await(Adopted)).facts
            unformed -= sum(isinstance(fact, WorkerFormed) for fact in facts)
        for worker in workers:
            self._submit(self._fleet.carry_out(Reopen(worker), self._engine.now()))

    def _compute(self, workers: tuple[CpGroup, ...]) -> None:
        for number, worker in enumerate(workers):
            work = StepWork(number, 0, STEP_TOKENS, 0, slots_of(self._engine.plan, worker, STEP_TOKENS))
            self._engine.submit(StepJob(-1 - number, worker, self._epoch, (work,)))  # the fleet counts up
        for _ in workers:
            self._await(StepDone)

    def _submit(self, effects: Effects) -> None:
        for job in effects.jobs:
            self._engine.submit(job)

    def _await(self, kind: type[Adopted] | type[StepDone]) -> Adopted | StepDone:
        told = self._engine.next()
        if not isinstance(told, kind):
            raise VertumnusError(f"switch {self._epoch}: expected {kind.__name__}, got {told}")
        return told
