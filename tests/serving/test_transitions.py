"""Random splits and merges under load: nothing is lost, no step mixes geometries, the books balance."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_cluster, a_control_plane, shared_prefix_requests
from tests.support.chaos import ChaosEngine
from tests.support.queues import assert_queues_mirrored
from tests.support.residency import held_by_rank, known_by_rank
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import Record
from vertumnus.domain.facts import (
    EpochAdopted,
    OperatorActed,
    RequestEnded,
    StepFailed,
    StepFinished,
    StepStarted,
    TransferFinished,
    WorkerFormed,
)
from vertumnus.domain.orders import Answer, CloseTransition, Reopen, Transfer
from vertumnus.policy.config import CacheConfig, PaperPolicy, VertumnusPolicy
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.serving.loop import Loop
from vertumnus.serving.patience import with_patience
from vertumnus.serving.replay import replay_facts, replay_inputs
from vertumnus.workers.config import DecodeConfig
from vertumnus.workers.fleet import Fleet

ACTIONS = ["split", "merge", "split", "merge", "drain", "reopen"]
LATTICE = [CpGroup(first, degree) for degree in (1, 2, 4) for first in range(0, 8, degree)]

wishes = st.lists(
    st.tuples(st.integers(0, 400_000_000), st.sampled_from(ACTIONS), st.sampled_from(LATTICE)),
    max_size=25,
)
shapes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(1, 20)), min_size=5, max_size=50
)
policies = st.sampled_from([PaperPolicy(), VertumnusPolicy()])
patiences = st.none() | st.integers(1, 300_000_000)


class MovingRig:
    """Eight ranks under degrees 1, 2, 4, an operator with wishes, an audit after every event."""

    cache: CacheConfig | None = None
    """How prefixes are managed; the default where it is None."""

    def __init__(
        self,
        seed: int,
        actions,
        composition=None,
        policy=None,
        blocks_per_rank=None,
        patience_ns: int | None = None,
        **chaos: float,
    ) -> None:
        random = Random(seed)
        self.policy = policy
        any_size = random.choice([16, 24, 64])
        self.cluster = a_cluster(
            composition=composition or {4: 1, 2: 1, 1: 2},
            degrees=(1, 2, 4),
            blocks_per_rank=blocks_per_rank or any_size,
            decode=DecodeConfig(ranks=2, slots_per_rank=3, tokens_per_rank=600),
            step_tokens=random.choice([0, 100]),
        )
        self.engine = ChaosEngine(seed, **chaos)
        for number, (at, kind, group) in enumerate(actions):
            named = (group, group.sibling) if kind == "merge" else (group,)
            self.engine.schedule(OperatorActed(at, number, "tester", kind, named), at)
        self.fleet, self.control = self.fresh()
        self.records: list[Record] = []
        self.geometry: dict[int, tuple[CpGroup, int]] = dict(self.ranks_now())
        self.running: dict[int, dict[int, tuple[CpGroup, int]]] = {}
        clients = with_patience(self.engine, self.fleet, patience_ns)
        self.loop = Loop(clients, self.fleet, self.control, self.record)

    def fresh(self) -> tuple[Fleet, ControlPlane]:
        return Fleet(self.cluster, 16), a_control_plane(self.cluster, self.policy, self.cache)

    def ranks_now(self):
        for worker in self.fleet.workers.values():
            for rank in worker.group.ranks:
                yield rank, (worker.group, worker.epoch)

    def record(self, source, body) -> None:
        """Follow each rank's geometry from the acknowledgements alone and hold every step against it."""
        self.records.append(Record(source, body))
        if type(body) is EpochAdopted:
            assert not any(body.rank in ranks for ranks in self.running.values()), "adopted within a step"
            self.geometry[body.rank] = (body.worker, body.epoch)
        elif type(body) is StepStarted:
            mine = {rank: self.geometry[rank] for rank in body.worker.ranks}
            assert set(mine.values()) == {(body.worker, body.epoch)}, "a step mixes geometries"
            self.running[body.step_id] = mine
        elif type(body) in (StepFinished, StepFailed):
            del self.running[body.step_id]

    def audit(self) -> None:
        self.fleet.check()
        self.control.check()
        assert_queues_mirrored(self.fleet, self.control)
        if any(worker.state == "forming" for worker in self.fleet.workers.values()):
            return  # second copies of blocks are told when the worker is formed
        if len(self.control.prefixes.residency):
            return  # the index is that of a moment that has passed
        assert known_by_rank(self.control.index) == held_by_rank(self.fleet.workers.values())

    def run(self, lengths) -> None:
        self.loop.serve(shared_prefix_requests(lengths, gap_ns=8_000_000), self.audit)

    def bodies(self, kind) -> list:
        return [record.body for record in self.records if type(record.body) is kind]


@settings(max_examples=120)
@given(shapes, wishes, st.integers(0, 10_000), policies)
def test_random_moves_lose_nothing(lengths, actions, seed, policy) -> None:
    """Every request finishes, every wish is answered, and what closed committed under new epochs."""
    rig = MovingRig(seed, actions, policy=policy)
    rig.run(lengths)
    ends = rig.bodies(RequestEnded)
    assert sorted(end.request_id for end in ends) == list(range(len(lengths)))
    assert {end.status for end in ends} == {"finished"}
    assert rig.control.ledger.total_ns == 0
    assert {order.outcome for order in rig.bodies(CloseTransition)} <= {"committed"}
    epochs = [order.epoch for order in rig.bodies(CloseTransition)]
    assert len(epochs) == len(set(epochs))


@settings(max_examples=80)
@given(shapes, wishes, st.integers(0, 10_000), policies, patiences)
def test_random_moves_with_failures_lose_nothing_silently(lengths, actions, seed, policy, patience) -> None:
    """Ranks die, acknowledgements are lost, steps fail, clients give up: all end once, both replays agree."""
    chaos = {"step_error": 0.02, "handoff_error": 0.05, "cancel": 0.1, "lost_ack": 0.05}
    rig = MovingRig(seed, actions, policy=policy, patience_ns=patience, **chaos)
    random = Random(seed)
    for _ in range(random.randrange(3)):
        rig.engine.lose_rank(random.randrange(8), random.randrange(400_000_000))
    rig.run(lengths)
    assert sorted(end.request_id for end in rig.bodies(RequestEnded)) == list(range(len(lengths)))
    assert rig.control.ledger.total_ns == 0
    assert replay_facts(rig.records, rig.fresh()[1]) is None
    assert replay_inputs(rig.records, *rig.fresh()) is None


def a_quiet_move(kind: str, *groups: CpGroup) -> MovingRig:
    """One wish at 1 ms, then requests that share a prefix of 6 blocks."""
    rig = MovingRig(5, [])
    rig.engine.schedule(OperatorActed(1_000_000, 0, "tester", kind, groups), 1_000_000)
    return rig


def test_a_merge_is_schedulable_after_the_last_acknowledgement() -> None:
    """The new worker opens after all its ranks adopted; hits on its sources' blocks count at once."""
    rig = a_quiet_move("merge", CpGroup(6, 1), CpGroup(7, 1))
    rig.run([(0, 6, 3)] * 12)
    kinds = [type(record.body) for record in rig.records]
    assert kinds.index(WorkerFormed) < kinds.index(Reopen)
    assert [body.rank for body in rig.bodies(EpochAdopted)].__len__() == 2
    assert CpGroup(6, 2) in rig.fleet.workers and CpGroup(6, 1) not in rig.fleet.workers
    assert rig.fleet.workers[CpGroup(6, 2)].epoch == 1


@pytest.mark.parametrize(
    ("kind", "groups", "said"),
    [
        ("merge", (CpGroup(5, 1), CpGroup(6, 1)), "there is no worker 5x1; in its place: 4x2"),
        ("split", (CpGroup(6, 1),), "degree 1 cannot be split"),
        ("merge", (CpGroup(0, 4), CpGroup(4, 2)), "not siblings"),
    ],
)
def test_an_illegal_move_is_refused_and_changes_nothing(kind, groups, said) -> None:
    """The answer says why, and the composition is as before."""
    rig = a_quiet_move(kind, *groups)
    before = set(rig.fleet.workers)
    rig.run([(0, 2, 1), (1, 3, 1)])
    (answer,) = rig.bodies(Answer)
    assert not answer.accepted and said in answer.reason
    assert set(rig.fleet.workers) == before and not rig.bodies(CloseTransition)


def test_a_missing_acknowledgement_fails_closed() -> None:
    """The transition ends as failed when its time is up, its ranks stay out, the rest serves everything."""
    rig = MovingRig(5, [], lost_ack=1.0)
    rig.engine.schedule(OperatorActed(1_000_000, 0, "tester", "split", (CpGroup(0, 4),)), 1_000_000)
    rig.loop.serve(shared_prefix_requests([(n % 3, 4, 1) for n in range(20)], gap_ns=400_000_000), rig.audit)
    (closed,) = rig.bodies(CloseTransition)
    assert closed.outcome == "failed" and "did not acknowledge" in closed.reason
    assert {end.status for end in rig.bodies(RequestEnded)} == {"finished"}
    late = [start for start in rig.bodies(StepStarted) if start.at > closed.epoch + 6_000_000_000]
    assert late and all(start.worker.first_rank >= 4 for start in late)


def test_a_split_fetches_the_missing_half_on_first_reuse() -> None:
    """Blocks of the parent's prefix are copied from the sibling, once; then the prefix is a hit there."""
    rig = MovingRig(5, [], composition={4: 1})
    rig.engine.schedule(OperatorActed(350_000_000, 0, "tester", "split", (CpGroup(0, 4),)), 350_000_000)
    rig.loop.serve(shared_prefix_requests([(0, 12, 2)] * 60, gap_ns=15_000_000), rig.audit)
    copied = rig.bodies(TransferFinished)
    assert {body.worker for body in copied} == {CpGroup(0, 2), CpGroup(2, 2)} and len(copied) == 2
    for body in copied:
        starts = [start for start in rig.bodies(StepStarted) if start.worker == body.worker]
        assert starts and all(item.cached_tokens == 12 * 16 for start in starts for item in start.items)
    orders = rig.bodies(Transfer)
    for order in orders:
        moved = [rank for rank in order.sources if rank not in order.destination.ranks]
        assert 0 < len(moved) < len(order.path), "only the missing half travels"
