"""The whole live stack under random splits and merges: every output as in the undisturbed run."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.support.greedy import differs_from_hf
from tests.support.live_stack import InOrder, LiveStack, Served, live_stack
from tests.support.rank_processes import resident_bytes, threads_of
from tests.support.slot_witness import Hit
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.codec import Body
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import OperatorActed, RequestArrived, RequestEnded, StepStarted
from vertumnus.domain.move import Move
from vertumnus.domain.orders import Answer, CloseTransition
from vertumnus.domain.units import Epoch
from vertumnus.live.engine import LiveEngine
from vertumnus.policy.reconfig.moves import moves
from vertumnus.run.pool import Pool
from vertumnus.serving.loop import Loop

pytestmark = pytest.mark.live

ENDED_BETWEEN = 3
"""Requests that end between two wishes at least, so that every composition serves some."""


def a_config(requests: int) -> RunConfig:
    """The first requests of the tool-agent trace for four nano ranks that may form every degree."""
    words = (
        "+experiment=tool_agent",
        "model=nano",
        f"workload.requests={requests}",
        "cluster.degrees=[1,2,4]",
        "seed=7",
    )
    with hydra_configs():
        return to_run_config(plain_tree(composed(words)))


class Memory(NamedTuple):
    """What the processes of a run hold."""

    ranks: tuple[int, ...]
    """Resident and its own, of each rank [bytes]."""
    threads: tuple[int, ...]
    """Of each rank: a process group has one of its own."""
    coordinator: int
    """Resident and its own [bytes]."""
    shared: tuple[int, ...]
    """Sizes of the shared KV maps [bytes]."""
    descriptors: int
    """Open files and sockets of the coordinator."""


def memory_of(engine: LiveEngine) -> Memory:
    """Return what a run's processes hold now."""
    return Memory(
        ranks=tuple(map(resident_bytes, engine.pids)),
        threads=tuple(map(threads_of, engine.pids)),
        coordinator=resident_bytes(os.getpid()),
        shared=tuple(os.fstat(file.fileno()).st_size for file in engine._pool._maps),
        descriptors=len(os.listdir("/proc/self/fd")),
    )


class Operator:
    """Asks for random legal moves, one after the other, while requests are served."""

    def __init__(
        self,
        seed: int,
        wishes: int,
        readings: Sequence[int] = (),
        is_enough: Callable[[], object] = lambda: True,
    ) -> None:
        """Ask for *wishes* moves, and more until *is_enough*.

        Memory is read before those whose numbers are in *readings*.
        """
        self._random = Random(seed)
        self._wishes, self._readings, self._is_enough = wishes, readings, is_enough
        self.asked = self._ended = 0
        self._posted: tuple[CpGroup, ...] = ()
        """The workers of the last wish until it is taken: what had arrived before it may come first."""
        self.memory: list[Memory] = []

    def after_event(self, engine: LiveEngine, pool: Pool, loop: Loop) -> bool:
        """Ask for the next move when it is time; return whether any is still to come."""
        workers = pool.control.pool.workers.values()
        free = Composition(tuple(state.group for state in workers if state.draining is None))
        if not set(self._posted) <= set(free.workers):
            self._posted = ()
        is_asking = self.asked < self._wishes or not self._is_enough()
        if is_asking and loop.ended >= self._ended + ENDED_BETWEEN and not self._posted:
            legal = [move for move in moves(free, engine.plan.lattice) if is_legal(pool, move)]
            if legal:  # else every worker is in transition, or has to stay for the longest prompt
                self._ask(engine, legal, loop.ended)
        return is_asking

    def _ask(self, engine: LiveEngine, legal: Sequence[Move], ended: int) -> None:
        if self.asked in self._readings:
            self.memory.append(memory_of(engine))
        move = self._random.choice(legal)
        engine.post(OperatorActed(0, self.asked, "test", move.kind, move.sources))
        self.asked, self._ended, self._posted = self.asked + 1, ended, move.sources


def is_legal(pool: Pool, move: Move) -> bool:
    """Return whether *move* would be granted now."""
    try:
        pool.control.legal_move(move.kind, move.sources)
    except ConfigError:
        return False
    return True


def check_served(served: Served) -> None:
    """Fail unless every request that arrived has finished, once."""
    arrived = [fact.request.request_id for fact in served.bodies(RequestArrived)]
    ends = served.bodies(RequestEnded)
    assert sorted(end.request_id for end in ends) == sorted(arrived)
    assert {(end.status, end.reason) for end in ends} == {("finished", None)}
    assert sorted(served.outputs) == sorted(arrived)


def check_outputs(stack: LiveStack, moved: Served, still: Served) -> None:
    """Fail unless outputs agree; where two logits are nearly equal, both must be HF's output."""
    for request, output in moved.outputs.items():
        undisturbed = still.outputs[stack.original(request)]
        if output != undisturbed:
            prompt = stack.prompts[request].tokens
            assert differs_from_hf(list(output), prompt) is None
            assert differs_from_hf(list(undisturbed), prompt) is None


def check_moves(served: Served, wishes: int) -> None:
    """Fail unless every wish was granted and every move was made."""
    assert [answer.accepted for answer in served.bodies(Answer)] == [True] * wishes
    closed = served.bodies(CloseTransition)
    assert [order.outcome for order in closed] == ["committed"] * wishes
    assert {order.kind for order in closed} == {"split", "merge"}


class Merges(InOrder):
    """Everybody in order; remembers which workers were formed by a merge."""

    def __init__(self, requests: int) -> None:
        super().__init__(requests)
        self.formed: set[tuple[CpGroup, Epoch]] = set()
        self.closed = 0

    def note(self, body: Body) -> None:
        """Count moves that are over, and remember a merge."""
        if isinstance(body, CloseTransition):
            self.closed += 1
            if body.kind == "merge":
                self.formed.add((*body.targets, body.epoch))

    def halves_hit(self, hits: Sequence[Hit]) -> Counter[str]:
        """Count *hits* at merged workers on blocks that a half had computed, by where these lie."""
        counts: Counter[str] = Counter()
        for hit in hits:
            if hit.older and (hit.worker, hit.epoch) in self.formed:
                left, right = ((not set(half.ranks).isdisjoint(hit.older)) for half in hit.worker.halves)
                counts.update(merged=1, left=left, right=right, both=left and right)
        return counts


def check_hits(served: Served) -> None:
    """Fail unless the log's hits are those that the witness found true in the slots."""
    items = [item for fact in served.bodies(StepStarted) for item in fact.items]
    told = [item.cached_tokens for item in items if item.cached_tokens]
    assert told == [served.block_tokens * len(hit.owners) for hit in served.witness.hits]
    print(f"{len(items)} prefills, {len(told)} hits")


def serve_twice(
    tmp_path: Path, requests: int, seed: int, wishes: int, kinds: Sequence[str], readings: Sequence[int] = ()
) -> tuple[Served, Operator]:
    """Serve undisturbed, then under random moves; compare, and return the latter.

    At least *wishes* moves are made, and so many that merged workers have reused blocks of all *kinds*: what
    their left half, their right half or both had computed.
    """
    with live_stack(a_config(requests), tmp_path) as stack:
        still = stack.serve("still")
        stack.repeat(requests)
        merges = Merges(len(stack.prompts))

        def all_kinds() -> bool:
            found = merges.halves_hit(stack.witness.hits)
            return all(found[kind] for kind in kinds)

        operator = Operator(seed, wishes, readings, all_kinds)

        def goes_on(engine: LiveEngine, pool: Pool, loop: Loop) -> bool:
            """Requests arrive until the last move is over."""
            return operator.after_event(engine, pool, loop) or merges.closed < operator.asked

        moved = stack.serve("moved", goes_on, script=merges)
        check_outputs(stack, moved, still)
    check_served(still)
    check_served(moved)
    check_hits(moved)
    check_moves(moved, operator.asked)
    found = merges.halves_hit(moved.witness.hits)
    print(f"{operator.asked} moves, {dict(found)}; memory {operator.memory}")
    assert operator.asked >= wishes and all(found[kind] for kind in kinds)
    return moved, operator


def test_outputs_are_those_of_the_undisturbed_run(tmp_path: Path) -> None:
    """Twenty random moves under load change no token and lose no request; the log replays exactly.

    Merged workers reuse what either of their halves had computed.
    """
    serve_twice(tmp_path, 120, seed=1, wishes=20, kinds=("left", "right"))


@pytest.mark.long
def test_two_hundred_moves_leave_memory_flat(tmp_path: Path) -> None:
    """Two hundred moves after forty, through every group of the lattice, add nothing that stays.

    A rank may still meet a longer prompt than before and keep larger buffers (20 MiB more were seen); a
    group that is not given back brings a thread and at least 1 MiB, 200 MiB in all. The coordinator
    keeps the outputs, and the log's last batch.
    """
    kinds = ("left", "right", "both")
    moved, operator = serve_twice(tmp_path, 1_200, seed=2, wishes=241, kinds=kinds, readings=(40, 240))
    assert {fact.worker for fact in moved.bodies(StepStarted)} == set(Lattice(4, (1, 2, 4), 4).groups())
    before, after = operator.memory
    grown = [late - early for early, late in zip(before.ranks, after.ranks, strict=True)]
    assert max(grown) < 48 << 20, grown
    assert after.coordinator - before.coordinator < 8 << 20
    assert (after.threads, after.shared) == (before.threads, before.shared)
    assert after.descriptors == before.descriptors
