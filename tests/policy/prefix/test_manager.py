"""A scan from counters to orders, through the control plane."""

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.control_rig import KEYS, LEFT, PAIR, RIGHT, Rig
from tests.support.tries import BRANCH, WIDE, Trie
from vertumnus.domain.facts import (
    Evicted,
    ReplicasDeleted,
    TimerFired,
    TransferFailed,
    TransferFinished,
    TransferStarted,
)
from vertumnus.domain.orders import AnyOrder, NoteScan, Reclaim, SetTimer, Transfer
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.config import ManagerConfig

SCAN_NS = 20_000_000_000


def a_rig(**manager: object) -> Rig:
    """A control plane whose manager copies after two reuses of a replica, and reclaims below one."""
    config = {"theta_intra": 2.0, "theta_reclaim": 1.0, "reclaim": False, "grace_scans": 0, **manager}
    return Rig(cache=CacheConfig(manager=ManagerConfig(**config)), cluster=a_cluster({2: 1, 1: 2}))


def scan(rig: Rig, number: int = 1) -> list[AnyOrder]:
    rig.now = number * SCAN_NS
    return rig.tell(TimerFired(rig.now, "scan", rig.now))


def reuse(rig: Rig, worker_degree: int, times: int) -> None:
    """Count reuses of the whole prefix at a degree."""
    for _ in range(times):
        request = a_request(0, input_tokens=136, block_keys=KEYS)
        rig.control.statistics.count_reuse(request, worker_degree, 128)


def test_a_hot_prefix_is_copied_to_a_second_worker_of_its_degree() -> None:
    """LEFT's prefix was reused five times: RIGHT gets it, told in order, and it counts when it arrived."""
    rig = a_rig(inter=False)
    rig.seed(LEFT)
    reuse(rig, 1, 5)
    note, order, timer = scan(rig)
    assert isinstance(note, NoteScan) and (note.inter, note.intra) == (0, 8)
    assert isinstance(order, Transfer) and isinstance(timer, SetTimer)
    assert (order.destination, order.reason, order.for_request) == (RIGHT, "intra", None)
    assert set(order.sources) == {2}
    assert rig.tell(TransferStarted(rig.now, 1, RIGHT, ())) == []
    assert rig.control.index.match(KEYS).held == [0, 8, 0]
    blocks = len(order.path)
    follow = rig.tell(TransferFinished(rig.now + 9, 1, RIGHT, 0, (3,) * blocks, 64, 9))
    held = rig.control.index.match(KEYS).held
    assert held[2] == blocks and all(isinstance(more, Transfer) for more in follow)


def test_a_failed_replica_leaves_the_books_as_they_were() -> None:
    """Nothing counts at the destination, and the next scan may try again."""
    rig = a_rig(inter=False)
    rig.seed(LEFT)
    reuse(rig, 1, 9)
    order = next(order for order in scan(rig) if isinstance(order, Transfer))
    while order is not None:
        follow = rig.tell(TransferFailed(rig.now, order.transfer_id, RIGHT, "no room at the destination"))
        order = next((more for more in follow if isinstance(more, Transfer)), None)
    assert rig.control.index.match(KEYS).held == [0, 8, 0]
    assert any(isinstance(order, Transfer) for order in scan(rig, 2))


def test_what_a_degree_misses_is_copied_to_it() -> None:
    """Requests that would run at degree 1 find the prefix at degree 2 only."""
    rig = a_rig(intra=False, theta_inter_s=0.001, preferred_degree="counterfactual")
    rig.seed(PAIR)
    for number in range(3):
        rig.arrive(a_request(number, input_tokens=136, block_keys=KEYS))
    orders = [order for order in scan(rig) if isinstance(order, Transfer)]
    assert orders and {order.reason for order in orders} == {"inter"}
    assert {order.destination for order in orders} <= {LEFT, RIGHT}


def test_a_replica_that_nobody_reuses_is_reclaimed() -> None:
    """Block by block from the leaf; told deleted, it is out of the index."""
    rig = a_rig(reclaim=True, inter=False, intra=False)
    rig.seed(LEFT)
    rig.seed(RIGHT)
    (_, order, _) = scan(rig)
    assert isinstance(order, Reclaim) and order.keys == (8,) and order.made_by_ns == SCAN_NS
    rank = order.worker.first_rank
    rig.tell(ReplicasDeleted(rig.now, order.reclaim_id, order.worker, (Evicted(rank, (8,)),)))
    assert sorted(rig.control.index.match(KEYS).held) == [0, 7, 8]


@pytest.mark.parametrize("off", ["inter", "intra", "reclaim"])
def test_every_part_has_its_own_switch(off: str) -> None:
    """All three find something; the one that is switched off orders nothing."""
    config = {"theta_intra": 2.0, "theta_inter_s": 0.1, "theta_reclaim": 0.5, "grace_scans": 0, off: False}
    trie = Trie(ManagerConfig(**config))
    trie.hold(WIDE)
    trie.miss(BRANCH, 1, 500)
    trie.access(BRANCH, 2, 6)
    trie.index.install((70,), 0, (0,))
    trie.index.install((70,), 0, (4,))
    manager = trie.manager()
    manager.scan(trie.demand.busy(), 0)
    counts = dict(zip(("inter", "intra", "reclaim"), manager.chosen, strict=False))
    assert {part for part, count in counts.items() if count} == {"inter", "intra", "reclaim"} - {off}


def test_the_budget_is_bytes_over_a_scan_interval() -> None:
    """100 bytes/s over 20 s are two blocks of 1,000 bytes."""
    trie = Trie(ManagerConfig(theta_intra=2.0, replication_bytes_per_s=100.0, reclaim=False))
    trie.hold(WIDE)
    trie.access(BRANCH, 2, 6)
    manager = trie.manager()
    orders = [order for order in manager.scan(trie.demand.busy(), 0) if isinstance(order, Transfer)]
    assert manager.chosen.intra == 2 and [order.path for order in orders] == [(1,)]


def test_without_a_manager_a_scan_only_takes_note() -> None:
    """The heat of the trie, and no operation."""
    rig = Rig()
    rig.seed(LEFT)
    reuse(rig, 1, 20)
    note, timer = scan(rig)
    assert isinstance(note, NoteScan) and isinstance(timer, SetTimer)
    assert (note.scan, note.blocks, note.inter, note.intra, note.reclaimed_blocks) == (0, 8, 0, 0, 0)
    assert [(heat.degree, heat.copies, heat.access) for heat in note.degrees] == [(1, 8, 160.0), (2, 0, 0.0)]
    assert {(hot.degree, hot.depth, hot.replicas, hot.access) for hot in note.hottest} == {
        (1, depth, 1, 20.0) for depth in range(1, 9)
    }
    again = scan(rig, 2)[0]
    assert isinstance(again, NoteScan) and again.degrees[0].access == pytest.approx(96.0)
