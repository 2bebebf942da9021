"""What the log tells of a pool that changes: windows, transitions and copies, by hand and under chaos."""

from collections import Counter
from itertools import groupby
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.serving.test_transitions import MovingRig, shapes, wishes
from tests.support.builders import shared_prefix_requests
from tests.support.recorded import MERGED, WORKERS, a_copy, a_header, a_merge, a_split, a_window
from vertumnus.domain.cluster import CpGroup, covers
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import (
    DeletionRefused,
    Evicted,
    OperatorActed,
    RankLost,
    ReplicasDeleted,
    RequestArrived,
    RequestsReturned,
    StepFinished,
    StepStarted,
    TimerFired,
    TransferFailed,
    TransferFinished,
    TransferStarted,
    WorkerDrained,
)
from vertumnus.domain.orders import (
    Answer,
    CloseTransition,
    DegreeHeat,
    Drain,
    HotBlock,
    NoteScan,
    Reclaim,
    Transfer,
)
from vertumnus.domain.units import SECOND
from vertumnus.records.config import Measurement
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import LogHeader
from vertumnus.records.reconfigs import CONTROLLER

LEFT, RIGHT = MERGED.halves


def fold(told: list[Record], header: LogHeader | None = None) -> RunFolds:
    """Return the folds of a whole run."""
    folds = RunFolds(header or a_header())
    folds.apply(told)
    folds.finish()
    return folds


# ---- by hand ------------------------------------------------------------------------------------


def test_a_merge_by_hand() -> None:
    """Drain, park and switch of a merge in which one sibling waits for the other."""
    (row,) = fold(a_merge(SECOND)).reconfigs
    assert (row.t_ns, row.epoch, row.kind, row.by) == (SECOND, 1, "merge", "ann")
    assert (row.sources, row.targets) == ((LEFT, RIGHT), (MERGED,))
    stages = (row.drain_ns, row.park_ns, row.switch_ns, row.total_ns)
    assert stages == (4 * SECOND, 2 * SECOND, SECOND, 5 * SECOND)
    assert (row.outcome, row.reason, row.redirected_requests, row.evicted_blocks) == ("committed", None, 1, 3)


def test_a_split_is_the_controllers_even_after_a_wish_for_the_same_workers() -> None:
    """A wish accounts for one transition; an idle worker drains and parks in no time."""
    first, second = fold([*a_merge(SECOND), *a_split(9 * SECOND)]).reconfigs
    assert (first.by, second.by) == ("ann", CONTROLLER)
    assert (second.t_ns, second.drain_ns, second.park_ns, second.switch_ns) == (9 * SECOND, 0, 0, SECOND)


def test_a_refused_wish_is_nobodys_transition() -> None:
    """What the controller begins later with the same workers is its own."""
    refused = [
        Record(INPUT, OperatorActed(1, 4, "bob", "merge", (LEFT, RIGHT))),
        Record(ORDER, Answer(4, False, "held")),
    ]
    unasked = [record for record in a_merge(SECOND) if not isinstance(record.body, OperatorActed | Answer)]
    told = [*refused, Record(INPUT, OperatorActed(SECOND, 5, "bob", "split", (WORKERS[0],))), *unasked]
    assert [row.by for row in fold(told).reconfigs] == [CONTROLLER]


def test_a_transition_that_never_came_to_the_switch() -> None:
    """With a source lost while draining there is a total, and neither drain nor park nor switch."""
    told = [
        *(Record(ORDER, Drain(worker)) for worker in (LEFT, RIGHT)),
        Record(FACT, RequestsReturned(2, RIGHT, (7,), "rank 3 lost", is_failure=True)),
        Record(FACT, WorkerDrained(3, LEFT)),
        Record(INPUT, RankLost(8, 3, 0, "killed")),
        Record(ORDER, CloseTransition(1, "merge", (LEFT, RIGHT), (MERGED,), "reopened", "3x1 was lost")),
    ]
    (row,) = fold(told).reconfigs
    assert (row.drain_ns, row.park_ns, row.switch_ns, row.total_ns) == (None, None, None, 8)
    assert (row.outcome, row.reason, row.redirected_requests) == ("reopened", "3x1 was lost", 0)


def test_windows_by_hand() -> None:
    """Rate, utilisation and the composition as it is when the window ends; nothing divided by nothing."""
    told = [
        *a_window(0, "merge 2x1 + 3x1 -> 2x2"),
        *a_merge(11 * SECOND),
        *a_window(1, capacity_ns=0, requests=0, long_fraction=None),
        *a_window(2, start_ns=30 * SECOND - 9),
    ]
    first, second, third = fold(told).windows
    assert (first.t_ns, first.requests_per_s, first.utilisation) == (10 * SECOND, 2.5, 0.6)
    assert str(first.composition) == "2 x CP1 + 1 x CP2"
    assert (second.requests_per_s, second.utilisation) == (0.0, None)
    assert second.composition.workers == (WORKERS[0], MERGED)
    assert third.requests_per_s is None


def test_copies_by_hand() -> None:
    """Blocks that come from elsewhere are counted; one that failed, and one that the run's end cut off."""
    order = Transfer(2, (1, 2), 0, (3, 3), LEFT, "reconcile", 6)
    told = [
        *a_copy(SECOND),
        Record(ORDER, order),
        Record(FACT, TransferStarted(4 * SECOND, 2, LEFT, ())),
        Record(ORDER, replace(order, transfer_id=3)),
        Record(FACT, TransferFailed(5 * SECOND, 3, LEFT, "no room at the destination")),
    ]
    done, cut, failed = fold(told).cache_ops
    assert (done.outcome, done.blocks, done.payload_bytes) == ("finished", 2, 2 * 2**20)
    assert (done.t_ns, done.wire_ns, done.wait_ns) == (SECOND, 2 * SECOND, 3 * SECOND)
    assert (done.worker, done.for_request, done.purpose) == (LEFT, 5, "reconcile")
    assert (done.origin, cut.origin) == ("reconcile", None)  # the second as in a log from before origins
    assert (cut.outcome, cut.blocks, cut.payload_bytes, cut.wait_ns) == ("interrupted", 0, None, None)
    assert (failed.outcome, failed.reason, failed.wait_ns) == (
        "failed",
        "no room at the destination",
        SECOND,
    )


def test_blocks_that_came_to_the_destination_meanwhile_are_not_counted() -> None:
    """A copy begins where the destination's own blocks end, which may be later than ordered."""
    told = [
        replace_body(record, first_block=2, owners=(2, 2))
        if type(record.body) is TransferFinished
        else record
        for record in a_copy(0)
    ]
    (row,) = fold(told).cache_ops
    assert row.blocks == 1


def replace_body(record: Record, **changes: object) -> Record:
    """Return *record* with a changed body."""
    return record._replace(body=replace(record.body, **changes))


# ---- under chaos --------------------------------------------------------------------------------


def a_rig(seed: int, actions: list, **chaos: float) -> tuple[MovingRig, LogHeader]:
    """Return a rig and the header that its log would have, with samples each 10 ms."""
    rig = MovingRig(seed, actions, **chaos)
    header = replace(
        a_header(),
        lattice=rig.cluster.lattice,
        composition=rig.cluster.initial_composition(),
        records=Measurement(warmup_share=0.0, worker_sample_s=0.01),
    )
    return rig, header


@settings(max_examples=60, deadline=None)
@given(shapes, wishes, st.integers(0, 10_000))
def test_the_folds_of_a_pool_in_trouble_add_up(lengths, actions, seed) -> None:
    """Ranks die, acknowledgements and copies fail, requests are cancelled: the tables still say it all."""
    rig, header = a_rig(seed, actions, step_error=0.02, handoff_error=0.05, cancel=0.1, lost_ack=0.05)
    random = Random(seed)
    for _ in range(random.randrange(3)):
        rig.engine.lose_rank(random.randrange(8), random.randrange(400_000_000))
    rig.run(lengths)
    folds = fold(rig.records, header)
    assert folds.problems == ()
    check_requests(rig, folds)
    check_transitions(rig, folds)
    check_samples(rig, folds)
    check_copies(rig, folds)


def check_requests(rig: MovingRig, folds: RunFolds) -> None:
    """One record each, whose parts add up."""
    assert len(folds.requests) == len(rig.bodies(RequestArrived))
    for record in folds.requests:
        assert record.placements >= record.attempts
        parts = (record.queue_ns, record.cache_wait_ns, record.prefill_ns, record.ext_ns)
        assert all(part is None or part >= 0 for part in parts)
        if record.ttft_ns is not None:
            assert sum(part for part in parts if part is not None) == record.ttft_ns


def check_transitions(rig: MovingRig, folds: RunFolds) -> None:
    """One row for each that was closed, with stages that fit into its whole."""
    closed = rig.bodies(CloseTransition)
    assert [(row.epoch, row.outcome) for row in folds.reconfigs] == [(o.epoch, o.outcome) for o in closed]
    for row in folds.reconfigs:
        assert row.by == "tester"
        if row.drain_ns is None or row.park_ns is None or row.switch_ns is None:
            assert row.outcome == "reopened"
        else:
            assert 0 <= row.park_ns <= row.drain_ns
            assert row.drain_ns + row.switch_ns == row.total_ns
    kinds = Counter(fault.kind for fault in folds.faults)
    outcomes = Counter(order.outcome for order in closed)
    for outcome in ("reopened", "failed"):
        assert kinds[f"transition_{outcome}"] == outcomes[outcome]
    assert kinds["wish_refused"] == sum(not order.accepted for order in rig.bodies(Answer))


def check_samples(rig: MovingRig, folds: RunFolds) -> None:
    """At each sample the workers cover the pool; the last one is what the fleet says; totals stay."""
    there = [sample for sample in folds.samples if sample.service != "ended"]
    for _, of_instant in groupby(there, key=lambda sample: sample.t_ns):
        samples = list(of_instant)
        idle = [s.worker for s in samples if s.service == "out of service"]
        serving = [s.worker for s in samples if s.service != "out of service"]
        assert covers(serving, (rank for worker in idle for rank in worker.ranks), gpus=8)
        assert sum(s.worker.degree for s in samples) == 8
    last = [sample for sample in there if sample.t_ns == there[-1].t_ns]
    assert {s.worker: (s.service, s.epoch) for s in last} == {
        group: (worker.state, worker.epoch) for group, worker in rig.fleet.workers.items()
    }
    served = sum(s.requests for s in [*last, *(s for s in folds.samples if s.service == "ended")])
    finished = {body.step_id for body in rig.bodies(StepFinished)}
    assert served == sum(len(step.items) for step in rig.bodies(StepStarted) if step.step_id in finished)


def check_copies(rig: MovingRig, folds: RunFolds) -> None:
    """One row for each order, ended as the fleet said."""
    assert [row.transfer_id for row in folds.cache_ops] == [o.transfer_id for o in rig.bodies(Transfer)]
    outcomes = Counter(row.outcome for row in folds.cache_ops)
    assert outcomes["finished"] == len(rig.bodies(TransferFinished))
    assert outcomes["failed"] == len(rig.bodies(TransferFailed))


def test_requests_after_a_split_wait_for_their_copies() -> None:
    """The wait for the missing half is cache wait, as long as the copy at most."""
    rig = MovingRig(5, [], composition={4: 1})
    rig.engine.schedule(OperatorActed(350_000_000, 0, "tester", "split", (CpGroup(0, 4),)), 350_000_000)
    rig.loop.serve(shared_prefix_requests([(0, 12, 2)] * 60, gap_ns=15_000_000))
    header = replace(a_header(), composition=rig.cluster.initial_composition())
    folds = fold(rig.records, header)
    waited = [record for record in folds.requests if record.cache_wait_ns]
    longest = max(row.wait_ns or 0 for row in folds.cache_ops)
    assert waited and all(0 < (record.cache_wait_ns or 0) <= longest for record in waited)
    assert {row.blocks for row in folds.cache_ops} == {6}


def test_a_reclamation_is_one_row() -> None:
    """Two blocks gone, one refused with its reason; a second order refused altogether."""
    told = [
        Record(INPUT, TimerFired(4 * SECOND, "scan", 4 * SECOND)),
        Record(ORDER, Reclaim(1, LEFT, (7, 8, 9), 4 * SECOND, "operator")),
        Record(FACT, DeletionRefused(4 * SECOND, 1, LEFT, 9, "in use")),
        Record(FACT, ReplicasDeleted(4 * SECOND, 1, LEFT, (Evicted(0, (7, 8)),))),
        Record(ORDER, Reclaim(2, LEFT, (5,), 4 * SECOND, "manager")),
        Record(FACT, DeletionRefused(4 * SECOND, 2, LEFT, 5, "descendants remain")),
    ]
    first, second = fold(told).cache_ops
    assert (first.purpose, first.worker, first.t_ns, first.transfer_id) == ("reclaim", LEFT, 4 * SECOND, None)
    assert (first.outcome, first.blocks, first.reason, first.wait_ns) == ("finished", 2, "in use", 0)
    assert (first.origin, second.origin) == ("operator", "manager")
    assert (second.outcome, second.blocks, second.reason) == ("failed", 0, "descendants remain")


def test_a_scan_is_a_row_a_degree_and_its_hottest_blocks() -> None:
    """Totals, choices and blocks as the note says, at the scan's time."""
    heat = (DegreeHeat(1, 30, 12.5, 7), DegreeHeat(2, 40, 0.0, 8 * SECOND))
    note = NoteScan(3, 55, heat, (HotBlock(2, 77, 4, 1, 9.5, SECOND),), 1, 2, 3, 4)
    folds = fold([Record(INPUT, TimerFired(SECOND, "scan", SECOND)), Record(ORDER, note)])
    assert [(row.t_ns, row.heat, row.note) for row in folds.trie_samples] == [
        (SECOND, heat[0], note),
        (SECOND, heat[1], note),
    ]
    (hot,) = folds.hot_prefixes
    assert (hot.t_ns, hot.scan, hot.block.key) == (SECOND, 3, 77)
