"""Copies, splits, merges, reclaims, evictions in any order: index, caches, links, slots and memory agree."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.serving.test_transitions import MovingRig, patiences, shapes, wishes
from tests.support.builders import BLOCK_TOKENS, shared_prefix_requests
from tests.support.model_memory import ModelMemory
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import ORDER, Record
from vertumnus.domain.facts import (
    DeletionRefused,
    ReplicasDeleted,
    RequestEnded,
    StepStarted,
    TransferFailed,
    TransferFinished,
)
from vertumnus.domain.orders import AdoptEpoch, NoteScan, Prefill, Reclaim, Transfer
from vertumnus.policy.config import CacheConfig, PaperPolicy, VertumnusPolicy
from vertumnus.policy.prefix.config import ManagerConfig
from vertumnus.run.memory_check import MemoryCheck
from vertumnus.run.pool import Pool
from vertumnus.serving.loop import Loop
from vertumnus.serving.patience import with_patience
from vertumnus.serving.replay import replay_facts, replay_inputs


def an_eager_manager(random: Random) -> CacheConfig:
    """Scans every 20 ms with thresholds that a handful of requests exceed, and reclaims at once."""
    manager = ManagerConfig(
        theta_intra=random.choice([0.5, 2.0]),
        theta_inter_s=0.0005,
        theta_reclaim=0.4,
        grace_scans=random.choice([0, 2]),
        rank_by=random.choice(["count", "seconds_per_byte"]),
        preferred_degree=random.choice(["observed", "counterfactual"]),
        prefetch=random.choice([False, True]),
        operations_per_scan=random.choice([2, 50]),
        replication_bytes_per_s=random.choice([None, 2e7]),
        background_copies=random.choice([1, 8]),
        blocks_per_copy=random.choice([1, 3, 16]),
    )
    return CacheConfig(scan_interval_s=0.02, decay=0.6, manager=manager)


class PrefixRig(MovingRig):
    """A moving pool whose manager and router copy all the time; every event is audited, memory included."""

    def __init__(
        self,
        seed: int,
        actions=(),
        policy=None,
        composition=None,
        delay_s: float = 0.0,
        blocks_per_rank=None,
        prefetch: bool | None = None,
        patience_ns: int | None = None,
        **chaos: float,
    ) -> None:
        self.cache = replace(an_eager_manager(Random(seed)), report_delay_s=delay_s)
        if prefetch is not None:
            self.cache = replace(self.cache, manager=replace(self.cache.manager, prefetch=prefetch))
        self.is_whole = True
        """Whether no split has stranded blocks."""
        super().__init__(seed, actions, composition, policy or VertumnusPolicy(), blocks_per_rank, **chaos)
        self.memory = ModelMemory(self.engine, BLOCK_TOKENS)
        pool, per_rank = Pool(self.fleet, self.control), self.cluster.blocks_per_rank
        self.check = MemoryCheck(self.memory, self.memory.digests, pool, BLOCK_TOKENS, per_rank)
        self.clients = with_patience(self.check, self.fleet, patience_ns)
        self.loop = Loop(self.clients, self.fleet, self.control, self.check.noting(self.record))

    def record(self, source, body) -> None:
        """Hold what a step reuses against what the reports so far say of its worker."""
        self.is_whole &= type(body) is not AdoptEpoch
        if type(body) is StepStarted and not self.cache.report_delay_s:
            requests = self.fleet._state.requests
            for item in body.items:
                keys = requests[item.request_id].block_keys[: item.cached_tokens // BLOCK_TOKENS]
                assert all(self.control.index.node(key).owners & body.worker.mask for key in keys)
        super().record(source, body)

    def audit(self) -> None:
        super().audit()
        assert len(self.control.prefixes.transfers) == len(self.fleet._transfers)
        self.check_ancestors()
        if not self.cache.report_delay_s:  # else the index is that of a moment that has passed
            self.check.after_event()
            self.check.compare()

    def check_ancestors(self) -> None:
        """Unless a split strands blocks, every holder holds the whole prefix."""
        if self.is_whole:
            for worker in self.fleet.workers.values():
                resident = worker.cache._resident
                assert all(block.parent is None or block.parent in resident for block in resident.values())

    def check_over(self, requests: int) -> None:
        """Every request ended once; nothing is reserved, pinned or under way."""
        assert sorted(end.request_id for end in self.bodies(RequestEnded)) == list(range(requests))
        assert self.control.ledger.total_ns == 0
        self.settle()
        books = self.fleet.books()
        assert (books.open_requests, books.pinned_blocks) == (0, 0)
        assert books.blocks_in_use == books.blocks_held
        assert len(self.control.prefixes.transfers) == len(self.control.prefixes.transfers.links) == 0

    def settle(self) -> None:
        """Let the copies under way end: they may outlive the last request."""
        while len(self.fleet._transfers):
            event = self.clients.next()
            assert event is not None
            self.loop.take(event)
            self.audit()


@settings(max_examples=20)
@given(shapes, wishes, st.integers(0, 10_000))
def test_random_operations_agree_after_every_event(lengths, actions, seed) -> None:
    """Pulls, replicas, reclaims and moves under memory pressure: every request is served."""
    rig = PrefixRig(seed, actions)
    rig.run(lengths)
    rig.check_over(len(lengths))
    assert {end.status for end in rig.bodies(RequestEnded)} == {"finished"}


@settings(max_examples=20)
@given(shapes, wishes, st.integers(0, 10_000), patiences)
def test_random_operations_with_failures_agree_after_every_event(lengths, actions, seed, patience) -> None:
    """Copies tear, steps break, ranks die, clients give up: both sides are released, both replays agree."""
    chaos = {"step_error": 0.02, "handoff_error": 0.2, "cancel": 0.1, "lost_ack": 0.03}
    policy = Random(seed).choice([PaperPolicy(), VertumnusPolicy()])
    rig = PrefixRig(seed, actions, policy, patience_ns=patience, **chaos)
    random = Random(seed)
    for _ in range(random.randrange(3)):
        rig.engine.lose_rank(random.randrange(8), random.randrange(400_000_000))
    rig.run(lengths)
    records = list(rig.records)
    assert replay_facts(records, rig.fresh()[1]) is None
    assert replay_inputs(records, *rig.fresh()) is None
    rig.check_over(len(lengths))


@settings(max_examples=20)
@given(shapes, wishes, st.integers(0, 10_000), st.sampled_from([0.001, 0.01, 0.1]))
def test_old_reports_harm_nobody(lengths, actions, seed, delay_s) -> None:
    """Orders that no longer fit are refused, ranks die: each request ends, and the index catches up."""
    rig = PrefixRig(seed, actions, delay_s=delay_s, handoff_error=0.1, cancel=0.05)
    random = Random(seed)
    for _ in range(random.randrange(2)):
        rig.engine.lose_rank(random.randrange(8), random.randrange(400_000_000))
    rig.run(lengths)
    rig.check_over(len(lengths))
    rig.control.prefixes.residency.catch_up(10**18)
    rig.audit()
    rig.check.compare()
    records = list(rig.records)
    assert replay_facts(records, rig.fresh()[1]) is None
    assert replay_inputs(records, *rig.fresh()) is None


def a_busy_run(seed: int, **chaos: float) -> PrefixRig:
    """Sixty requests of three prefixes on six workers, no moves."""
    rig = PrefixRig(seed, composition={2: 2, 1: 4}, **chaos)
    rig.run([(n % 3, 2 + (n * 7) % 8, 1 + n % 13) for n in range(60)])
    rig.check_over(60)
    return rig


def test_the_rig_does_what_it_is_for() -> None:
    """Over ten seeds every kind of copy happens, finishes and fails, and replicas are deleted and refused."""
    kinds: Counter[str] = Counter()
    for seed in range(10):
        rig = a_busy_run(seed, handoff_error=0.1)
        kinds.update(order.reason for order in rig.bodies(Transfer))
        for body in (TransferFinished, TransferFailed, ReplicasDeleted, Reclaim, NoteScan):
            kinds[body.__name__] += len(rig.bodies(body))
    assert min(kinds[reason] for reason in ("pull", "inter", "intra")) > 0
    assert min(kinds[name] for name in ("TransferFinished", "TransferFailed", "ReplicasDeleted")) > 0


def without_origins(records: list[Record]) -> list[Record]:
    """Return *records* as they were before orders said who wanted them."""
    return [
        Record(source, replace(body, origin=None) if isinstance(body, Transfer | Reclaim) else body)
        for source, body in records
    ]


def test_every_operation_has_its_origin_and_older_logs_replay() -> None:
    """The manager's copies and deletions, and the requests'; a log without origins replays as exactly."""
    rig = a_busy_run(4)
    origins = {(order.reason, order.origin) for order in rig.bodies(Transfer)}
    assert origins == {("pull", "pull"), ("inter", "manager"), ("intra", "manager")}
    assert {order.origin for order in rig.bodies(Reclaim)} == {"manager"}
    older = without_origins(rig.records)
    assert replay_facts(older, rig.fresh()[1]) is None
    assert replay_inputs(older, *rig.fresh()) is None
    place = next(place for place, record in enumerate(older) if isinstance(record.body, Transfer))
    older[place] = Record(ORDER, replace(older[place].body, first_block=99))
    assert replay_inputs(older, *rig.fresh()).place == place


def test_blocks_are_copied_while_requests_queue() -> None:
    """As published nobody pulls; with prefetch blocks come for some who queue, and nobody waits for them."""
    pulls = Counter()
    for seed, prefetch in [(seed, prefetch) for seed in range(5) for prefetch in (False, True)]:
        rig = PrefixRig(seed, policy=PaperPolicy(), composition={2: 2, 1: 4}, prefetch=prefetch)
        rig.run([(n % 3, 2 + (n * 7) % 8, 1 + n % 13) for n in range(60)])
        rig.check_over(60)
        copies = [order for order in rig.bodies(Transfer) if order.reason == "pull"]
        assert {order.for_request for order in copies} <= {None}
        assert {order.after_transfer for order in rig.bodies(Prefill)} == {None}
        pulls[prefetch] += len(copies)
    assert pulls[False] == 0 < pulls[True]


def test_a_reclaim_is_answered_block_by_block() -> None:
    """Each named block is told deleted or refused, once."""
    rig = a_busy_run(4)
    asked = Counter(key for order in rig.bodies(Reclaim) for key in order.keys)
    told = Counter(
        key for fact in rig.bodies(ReplicasDeleted) for _, keys in fact.evicted for key in keys
    ) + Counter(fact.key for fact in rig.bodies(DeletionRefused))
    assert asked and asked == told


LENGTHS = [(0, 6, n % 9) for n in range(40)]
"""Requests for one prefix."""


def one_prefix(lost: tuple[int, int] | None = None) -> PrefixRig:
    """Serve `LENGTHS`; *lost* is a rank that dies, and when [ns]."""
    rig = PrefixRig(3, composition={2: 2, 1: 4})
    if lost is not None:
        rig.engine.lose_rank(*lost)
    rig.run(LENGTHS)
    rig.check_over(len(LENGTHS))
    return rig


def first_copy(rig: PrefixRig) -> tuple[Transfer, int]:
    """Return the first transfer of a run and when it was ordered [ns]."""
    now = 0
    for _, body in rig.records:
        now = getattr(body, "at", now)
        if type(body) is Transfer:
            return body, now
    raise AssertionError("nothing was copied")


@pytest.mark.parametrize("dies", ["source", "destination"])
@pytest.mark.parametrize("after_ns", [0, 1, 10_000_000, 30_000_000])
def test_a_rank_dies_during_a_copy(dies: str, after_ns: int) -> None:
    """At any point of it: both sides are released and the other workers serve every request."""
    copy, ordered_ns = first_copy(one_prefix())
    rank = copy.sources[0] if dies == "source" else copy.destination.first_rank
    rig = one_prefix(lost=(rank, ordered_ns + after_ns))
    assert {end.status for end in rig.bodies(RequestEnded)} == {"finished"}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_many_seeds(seed: int) -> None:
    """Long streams with moves and failures over many seeds."""
    random = Random(seed)
    lengths = [(random.randrange(4), random.randrange(10), random.randrange(1, 20)) for _ in range(150)]
    groups = [CpGroup(first, degree) for degree in (1, 2, 4) for first in range(0, 8, degree)]
    actions = [
        (random.randrange(1_200_000_000), random.choice(["split", "merge"]), random.choice(groups))
        for _ in range(40)
    ]
    rig = PrefixRig(seed, actions, step_error=0.005, handoff_error=0.1, cancel=0.05, lost_ack=0.01)
    rig.loop.serve(shared_prefix_requests(lengths, gap_ns=8_000_000), rig.audit)
    rig.check_over(len(lengths))
