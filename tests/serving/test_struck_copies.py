"""A copy of each kind, struck at either end at any point: both sides stay consistent, everybody is served."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from tests.serving.test_prefix_operations import PrefixRig
from tests.support.builders import BLOCK_TOKENS, shared_prefix_requests
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import OperatorActed, RequestEnded, StepStarted, TransferFailed, TransferFinished
from vertumnus.domain.orders import Answer
from vertumnus.domain.request import Request
from vertumnus.policy.config import PaperPolicy, VertumnusPolicy
from vertumnus.serving.replay import replay_inputs
from vertumnus.workers.copies import Copy

LENGTHS = [(n % 2, 6, n % 9) for n in range(40)]
"""Requests for two prefixes of six blocks."""
SMALL = 16
"""Blocks of a rank: two prefixes and a bit."""
FLOOD = 8
"""Prompts that nearly fill a rank, one for each worker and more."""
SEEDS = {"pull": 0, "inter": 0, "intra": 1, "reconcile": 0}
"""At which there are such copies."""
SPLIT = (60_000_000, "split", CpGroup(0, 4))


class StruckRig(PrefixRig):
    """Lets something happen to one end of the first copy of a kind, some events after it has begun."""

    def __init__(self, seed: int, reason: str, end: str, blow: str, after: int) -> None:
        if reason == "reconcile":  # such copies follow a split
            super().__init__(seed, [SPLIT], PaperPolicy(), {4: 2}, blocks_per_rank=SMALL)
        else:
            composition = {2: 4} if (reason, blow) == ("intra", "split") else {2: 2, 1: 4}
            super().__init__(seed, [], VertumnusPolicy(), composition, blocks_per_rank=SMALL)
        self._reason, self._end, self._blow, self._after = reason, end, blow, after
        self._seen: int | None = None
        self._flood = 0
        self.struck: int | None = None
        """The transfer that was under way when it happened."""

    def arrivals(self) -> Iterator[Request]:
        """The requests, and the flood as soon as it is called for."""
        flooding = range(1_000, 1_000 + FLOOD)
        for request in shared_prefix_requests(LENGTHS, gap_ns=8_000_000):
            yield request
            while self._flood:
                number = flooding[-self._flood]
                self._flood -= 1
                keys = tuple(number * 100 + block for block in range(SMALL - 1))
                yield Request(number, request.arrival_ns, len(keys) * BLOCK_TOKENS + 1, 1, keys)

    def after_event(self) -> None:
        """Audit; strike when it is time."""
        self.audit()
        if self.struck is not None:
            return
        copies = [c for c in self.fleet._transfers.under_way if c.order.reason == self._reason]
        if not copies:
            return
        copy = copies[0]
        if copy.order.transfer_id != self._seen:
            self._seen, self._left = copy.order.transfer_id, self._after
        if not self._left:
            self.struck = copy.order.transfer_id
            self._strike(copy.destination.group if self._end == "destination" else copy.sources[0], copy)
        self._left -= 1

    def _strike(self, worker: CpGroup, copy: Copy) -> None:
        now = self.engine.now()
        match self._blow:
            case "dies":
                self.engine.lose_rank(worker.first_rank, now)
            case "evicts":
                self._flood = FLOOD
            case "merge":
                self.engine.schedule(OperatorActed(now, 9, "t", "merge", (worker, worker.sibling)), now)
            case kind:
                self.engine.schedule(OperatorActed(now, 9, "t", kind, (worker,)), now)

    def serve(self) -> None:
        """Serve everything; whatever came of the copy, all books balance and the replay agrees."""
        self.loop.serve(self.arrivals(), self.after_event)
        self.settle()
        ends = self.bodies(RequestEnded)
        assert {end.status for end in ends} == {"finished"}
        assert len({end.request_id for end in ends}) == len(ends) == self.loop.arrived
        books = self.fleet.books()
        assert (books.open_requests, books.pinned_blocks) == (0, 0)
        assert books.blocks_in_use == books.blocks_held
        assert len(self.control.prefixes.transfers.links) == self.control.ledger.total_ns == 0
        assert replay_inputs(list(self.records), *self.fresh()) is None

    def outcome(self) -> str:
        """What became of the copy that was struck, and of the wish."""
        if self.struck is None:
            return "none"
        if any(not answer.accepted for answer in self.bodies(Answer)):
            return "refused"
        if any(fact.transfer_id == self.struck for fact in self.bodies(TransferFailed)):
            return "failed"
        assert any(fact.transfer_id == self.struck for fact in self.bodies(TransferFinished))
        evicts = any(fact.evicted for fact in self.bodies(StepStarted))
        return "finished" if self._blow != "evicts" or evicts else "none"


def outcomes(reason: str, blow: str, seeds: Iterable[int], points: Iterable[int]) -> Counter[str]:
    """Strike both ends at every one of *points*, ascending, and count what came of it.

    Up to its blow a run is the same whatever its point, so that where one point finds no copy left no later
    one does.
    """
    counts: Counter[str] = Counter()
    for seed in seeds:
        for end in ("source", "destination"):
            for after in points:
                rig = StruckRig(seed, reason, end, blow, after)
                rig.serve()
                counts[rig.outcome()] += 1
                if rig.struck is None:
                    break
    return counts


@pytest.mark.parametrize("reason", ["pull", "inter", "intra", "reconcile"])
@pytest.mark.parametrize("blow", ["dies", "drain", "split", "merge", "evicts"])
def test_a_struck_copy(reason: str, blow: str) -> None:
    """Whoever dies, drains, splits, merges or evicts: the copy ends, and every request is served."""
    counts = outcomes(reason, blow, [SEEDS[reason]], [1])
    print(dict(counts))
    assert counts["failed"] + counts["finished"] > 0
    if blow == "dies":
        assert counts["failed"] > 0


@pytest.mark.long
@pytest.mark.parametrize("reason", ["pull", "inter", "intra", "reconcile"])
@pytest.mark.parametrize("blow", ["dies", "drain", "split", "merge", "evicts"])
def test_a_struck_copy_for_many_seeds(reason: str, blow: str) -> None:
    """At up to twelve points of it."""
    counts = outcomes(reason, blow, range(4), range(12))
    print(dict(counts))
    assert counts["failed"] + counts["finished"] > 8
