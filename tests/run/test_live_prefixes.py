"""The whole live stack with a manager that copies and reclaims all the time: every output as uncached.

After every copy, deletion, split and merge the ranks read back what they hold (`MemoryCheck`).
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.run.test_live_moves import Operator, check_outputs, check_served
from tests.support.live_stack import LiveStack, Served, Turn, live_stack
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.codec import Body
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import ReplicasDeleted, StepStarted, TransferFailed, TransferFinished
from vertumnus.domain.orders import CloseTransition, Transfer
from vertumnus.domain.request import Request
from vertumnus.live.engine import LiveEngine
from vertumnus.live.plan import LivePlan
from vertumnus.run.pool import Pool
from vertumnus.serving.loop import Loop
from vertumnus.trace.prompts import Prompt

pytestmark = pytest.mark.live

SCAN_NS = 50_000_000
EAGER = (
    "cache=vertumnus",
    f"cache.scan_interval_s={SCAN_NS / 1e9}",
    "cache.manager.theta_inter_s=0.0005",
    "cache.manager.theta_intra=0.2",
    "cache.manager.theta_reclaim=0.15",
    "cache.manager.grace_scans=0",
    "cache.manager.blocks_per_copy=4",
)
"""Copies whatever was reused once, and lets go of it a few scans later."""

PREFIX_BLOCKS = 6
HOT, COLD = 12, 30
"""Prompts of one prefix, and prompts that share nothing: more than a script asks for before it gives up."""


def a_config(requests: int, *words: str) -> RunConfig:
    """The first requests of the tool-agent trace on four nano ranks that may form every degree."""
    given = (
        "+experiment=tool_agent",
        "model=nano",
        f"workload.requests={requests}",
        "cluster.degrees=[1,2,4]",
        "cluster.blocks_per_rank=200",
        "seed=7",
        *EAGER,
        *words,
    )
    with hydra_configs():
        return to_run_config(plain_tree(composed(given)))


def script_prompts(first: int, plan: LivePlan) -> Iterator[Prompt]:
    """`HOT` prompts of one prefix and `COLD` of none, numbered from *first* on."""
    draw, block_tokens, vocab_size = np.random.default_rng(3), plan.block_tokens, plan.model.vocab_size
    keys = tuple(range(-1, -PREFIX_BLOCKS - 1, -1))  # a trace's keys count from 0
    prefix = draw.integers(0, vocab_size, PREFIX_BLOCKS * block_tokens)
    for number in range(first, first + HOT + COLD):
        own = draw.integers(0, vocab_size, block_tokens // 2)
        is_hot = number < first + HOT
        tokens = np.concatenate([prefix, own]) if is_hot else own
        yield Prompt(Request(number, 0, len(tokens), 2, keys if is_hot else ()), tokens)


class Scripted:
    """One prefix is wanted until it has a replica, none until one is deleted; then the trace, and moves.

    Requests of the first two parts come one at a time, a scan apart, so that each is served where its prefix
    is, every scan sees one reuse more, and nothing but the manager makes copies.
    """

    def __init__(self, trace: int, prompts: int, wishes: int) -> None:
        """Before the *trace* first of *prompts* ask for those after them.

        Then come *wishes* moves, and more until there was a split and a merge; after the trace what is left.
        """
        self._hot = range(trace, trace + HOT)
        self._cold = range(trace + HOT, trace + HOT + COLD)
        self._trace = (*range(trace), *range(trace + HOT + COLD, prompts))
        self._operator = Operator(1, wishes, is_enough=lambda: {"split", "merge"} <= self._moved)
        self._moved: set[str] = set()
        self._is_moving = False
        self._ordered: set[int] = set()
        self.replicas = self.deleted = 0
        """Copies and deleted blocks before the moves."""

    def note(self, body: Body) -> None:
        """Count replicas and deletions."""
        if isinstance(body, Transfer) and body.reason in ("inter", "intra"):
            self._ordered.add(body.transfer_id)
        elif isinstance(body, CloseTransition):
            self._moved.add(body.kind)
        elif self._is_moving:
            return
        elif isinstance(body, TransferFinished):
            self.replicas += body.transfer_id in self._ordered
        elif isinstance(body, ReplicasDeleted):
            self.deleted += sum(len(keys) for _, keys in body.evicted)

    def turns(self) -> Iterator[Turn]:
        """Yield who arrives."""
        late = 0  # while a copy is under way there is nothing to show but patience
        for request in self._hot:
            if self.replicas:
                break
            late += bool(self._ordered)
            yield Turn(request, SCAN_NS << late)
        for request in self._cold:
            if self.deleted:
                break
            yield Turn(request, SCAN_NS)
        self._is_moving = True
        yield from map(Turn, self._trace)

    def after_event(self, engine: LiveEngine, pool: Pool, loop: Loop) -> bool:
        """Move workers once it is time."""
        return not self._is_moving or self._operator.after_event(engine, pool, loop)


def operations(served: Served) -> Counter[str]:
    """Count copies by reason and end, and deleted blocks."""
    counts = Counter(f"{order.reason} ordered" for order in served.bodies(Transfer))
    reasons = {order.transfer_id: order.reason for order in served.bodies(Transfer)}
    counts.update(reasons[fact.transfer_id] for fact in served.bodies(TransferFinished))
    counts["failed"] = len(served.bodies(TransferFailed))
    counts["deleted"] = sum(len(keys) for fact in served.bodies(ReplicasDeleted) for _, keys in fact.evicted)
    return counts


def check_served_as_uncached(stack: LiveStack, uncached: Served, managed: Served) -> Counter[str]:
    """Fail unless outputs agree and memory was compared after every operation; count those."""
    check_outputs(stack, managed, uncached)
    check_served(uncached)
    check_served(managed)
    assert not any(item.cached_tokens for fact in uncached.bodies(StepStarted) for item in fact.items)
    assert managed.witness.hits
    counts = operations(managed)
    ended = managed.bodies(TransferFinished, TransferFailed, ReplicasDeleted, CloseTransition)
    moments = {fact.at for fact in ended if not isinstance(fact, CloseTransition)}
    assert managed.check.checks >= len(moments)
    print(dict(counts), f"{managed.check.checks} checks of {managed.check.blocks} blocks")
    return counts


def check_that_spoilt_memory_shows(stack: LiveStack, served: Served) -> None:
    """Negative control: one byte of one rank's memory is changed, and the check names that block alone."""
    (rank, key), slot = next(served.check.held())
    plan, shared_map = stack.engine.plan, stack.engine._pool._maps[rank].fileno()
    place = slot % plan.blocks_per_rank * plan.block_bytes
    os.pwrite(shared_map, bytes([os.pread(shared_map, 1, place)[0] ^ 1]), place)
    with pytest.raises(
        InvariantError, match=rf"rank {rank}, block {key}, slot {slot}: the rank has"
    ) as caught:
        served.check.compare()
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("transport", "policy"),
    [("shared", "vertumnus"), pytest.param("pairwise", "paper", marks=pytest.mark.long)],
)
def test_outputs_are_those_of_the_uncached_run(tmp_path: Path, transport: str, policy: str) -> None:
    """Pulls, replicas, reclaims, splits and merges among degrees 1, 2 and 4 change no token."""
    words = (f"backend.transport={transport}", f"policy={policy}", "cluster.composition={1: 4, 2: 0}")
    with live_stack(a_config(80, *words), tmp_path) as stack:
        trace = len(stack.prompts)
        stack.prompts += script_prompts(trace, stack.engine.plan)
        uncached = stack.serve("uncached", uncached=True)
        stack.repeat(trace)
        script = Scripted(trace, len(stack.prompts), wishes=8)
        managed = stack.serve("managed", script.after_event, script=script)
        check_served_as_uncached(stack, uncached, managed)
        if transport == "shared":
            check_that_spoilt_memory_shows(stack, managed)
    assert script.replicas and script.deleted
    assert {order.kind for order in managed.bodies(CloseTransition)} == {"split", "merge"}


@pytest.mark.long
@pytest.mark.parametrize("policy", ["paper", "vertumnus"])
@pytest.mark.parametrize("seed", range(3))
def test_outputs_are_those_of_the_uncached_run_for_many_seeds(tmp_path: Path, seed: int, policy: str) -> None:
    """Longer runs, other moves."""
    with live_stack(a_config(300, f"policy={policy}", f"seed={seed}"), tmp_path) as stack:
        uncached = stack.serve("uncached", uncached=True)
        stack.repeat(len(stack.prompts))
        managed = stack.serve("managed", Operator(100 + seed, 60).after_event)
        check_served_as_uncached(stack, uncached, managed)
