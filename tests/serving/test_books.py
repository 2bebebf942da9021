"""The books balance after every event, whatever happens to jobs, ranks and clients."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_cluster, a_control_plane, shared_prefix_requests
from tests.support.chaos import ChaosEngine
from tests.support.queues import assert_queues_mirrored
from tests.support.residency import held_by_rank, known_by_rank
from vertumnus.domain.codec import ORDER, Record
from vertumnus.domain.facts import RequestEnded, StepStarted
from vertumnus.domain.orders import Prefill
from vertumnus.policy.config import (
    CacheFirstPolicy,
    DynamoKvPolicy,
    HomoPolicy,
    LeastLoadedPolicy,
    LMetricPolicy,
    PaperPolicy,
    RoundRobinPolicy,
    SglangCacheAwarePolicy,
    StaticPolicy,
    VertumnusPolicy,
    VllmDpPolicy,
)
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.serving.loop import Loop
from vertumnus.serving.patience import with_patience
from vertumnus.serving.replay import replay_facts, replay_inputs
from vertumnus.workers.config import DecodeConfig
from vertumnus.workers.fleet import Fleet

shapes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(1, 20)), min_size=1, max_size=40
)


class Rig:
    """A pool on the chaos engine that audits itself after every event."""

    def __init__(
        self,
        seed: int,
        policy=None,
        composition=None,
        blocks_per_rank: int | None = None,
        patience_ns: int | None = None,
        **chaos: float,
    ) -> None:
        random = Random(seed)
        self.cluster = a_cluster(
            composition=composition,
            blocks_per_rank=blocks_per_rank or random.choice([12, 20, 64]),
            decode=DecodeConfig(ranks=2, slots_per_rank=random.choice([1, 3]), tokens_per_rank=400),
            step_tokens=random.choice([0, 100, 400]),
            handoff_share=random.choice([0.25, 1.0]),
        )
        self.policy = policy
        self.engine = ChaosEngine(seed, **chaos)
        self.fleet, self.control = self.fresh()
        self.records: list[Record] = []
        clients = with_patience(self.engine, self.fleet, patience_ns)
        self.loop = Loop(clients, self.fleet, self.control, self.record)

    def fresh(self) -> tuple[Fleet, ControlPlane]:
        return Fleet(self.cluster, 16), a_control_plane(self.cluster, self.policy)

    def record(self, source, body) -> None:
        self.records.append(Record(source, body))

    def audit(self) -> None:
        self.fleet.check()
        self.control.check()
        assert known_by_rank(self.control.index) == held_by_rank(self.fleet.workers.values())
        assert_queues_mirrored(self.fleet, self.control)

    def run(self, lengths) -> None:
        self.loop.serve(shared_prefix_requests(lengths), self.audit)

    def ends(self) -> list[RequestEnded]:
        return [r.body for r in self.records if type(r.body) is RequestEnded]


policies = st.sampled_from([PaperPolicy(), VertumnusPolicy()])
patiences = st.none() | st.integers(1, 150_000_000)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10_000), policies, patiences)
def test_books_balance_under_failures(lengths, seed, policy, patience_ns) -> None:
    """Steps and hand-offs fail, clients cancel or give up, ranks die: all end once, all books close at 0."""
    rig = Rig(seed, policy, patience_ns=patience_ns, step_error=0.03, handoff_error=0.1, cancel=0.2)
    random = Random(seed)
    if random.random() < 0.5:
        rig.engine.lose_rank(random.randrange(4), random.randrange(200_000_000))
    if random.random() < 0.5:
        rig.engine.lose_decode_rank(random.randrange(2), random.randrange(200_000_000))
    rig.run(lengths)
    assert sorted(end.request_id for end in rig.ends()) == list(range(len(lengths)))
    books = rig.fleet.books()
    assert (books.open_requests, books.pinned_blocks, books.decode_slots) == (0, 0, 0)
    assert books.blocks_in_use == books.blocks_held
    assert rig.control.ledger.total_ns == 0


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10_000), st.sampled_from([{1: 2}, {2: 2}, {1: 1, 2: 1}]))
def test_failing_steps_let_nobody_wait_for_ever(lengths, seed, composition) -> None:
    """Promises and pulls of requests whose steps and copies fail, often: each request ends, once."""
    rig = Rig(seed, VertumnusPolicy(), composition, step_error=0.4, handoff_error=0.2)
    rig.run(lengths)
    assert sorted(end.request_id for end in rig.ends()) == list(range(len(lengths)))
    assert replay_inputs(rig.records, *rig.fresh()) is None


@settings(max_examples=30, deadline=None)
@given(shapes, st.integers(0, 10_000), policies)
def test_undisturbed_runs_finish_everything(lengths, seed, policy) -> None:
    """Without failures every request finishes, however small memory and decode pool are."""
    rig = Rig(seed, policy)
    rig.run(lengths)
    assert {end.status for end in rig.ends()} == {"finished"}


@settings(max_examples=30, deadline=None)
@given(shapes, st.integers(0, 10_000), policies, patiences)
def test_replays_are_exact(lengths, seed, policy, patience_ns) -> None:
    """Facts through a fresh control plane give the same orders; inputs give all facts and orders."""
    rig = Rig(seed, policy, patience_ns=patience_ns, step_error=0.03, handoff_error=0.1, cancel=0.2)
    rig.engine.lose_rank(seed % 4, 50_000_000)
    rig.run(lengths)
    assert replay_facts(rig.records, rig.fresh()[1]) is None
    assert replay_inputs(rig.records, *rig.fresh()) is None


@settings(max_examples=30, deadline=None)
@given(shapes, st.integers(0, 10_000))
def test_promised_blocks_are_there_when_the_step_starts(lengths, seed) -> None:
    """With room for everything a step reuses at least what its request was priced with, in any order."""
    rig = Rig(seed, VertumnusPolicy(), blocks_per_rank=400)
    rig.run(lengths)
    placed = {r.body.request_id: r.body for r in rig.records if type(r.body) is Prefill}
    for record in rig.records:
        for item in record.body.items if type(record.body) is StepStarted else ():
            assert item.cached_tokens >= placed[item.request_id].expected_cached


def test_replay_names_the_first_difference() -> None:
    """A changed order in the log is found, at its place."""
    rig = Rig(3)
    rig.run([(0, 3, 1), (0, 4, 2), (1, 2, 5)])
    place = [i for i, r in enumerate(rig.records) if r.source == ORDER][-1]
    rig.records[place] = Record(ORDER, rig.records[0].body)
    facts, inputs = replay_facts(rig.records, rig.fresh()[1]), replay_inputs(rig.records, *rig.fresh())
    assert facts is not None and facts.place == place
    assert inputs is not None and inputs.place == place


@pytest.mark.parametrize(
    ("policy", "composition"),
    [
        (PaperPolicy(beta=2.0, queue_estimate="remaining"), None),
        (VertumnusPolicy(), None),
        (VertumnusPolicy(shortest_first=False), None),
        (HomoPolicy(), {2: 2}),
        (StaticPolicy(length_threshold=60), None),
        (LeastLoadedPolicy(), None),
        (RoundRobinPolicy(), None),
        (CacheFirstPolicy(), None),
        (LMetricPolicy(), None),
        (DynamoKvPolicy(), None),
        (VllmDpPolicy(), None),
        (SglangCacheAwarePolicy(balance_abs=1), None),
    ],
)
def test_every_policy_balances_and_replays(policy, composition) -> None:
    """Each policy serves a mixed stream with failures, and replays exactly."""
    rig = Rig(11, policy, composition, step_error=0.02, handoff_error=0.05, cancel=0.1)
    rig.run([(n % 3, n % 7, 1 + n % 11) for n in range(60)])
    assert len(rig.ends()) == 60
    assert replay_facts(rig.records, rig.fresh()[1]) is None
