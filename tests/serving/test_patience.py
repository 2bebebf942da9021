"""Clients that give up: at the instant at which patience ends, wherever their request is, and never else."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.test_books import shapes
from tests.serving.test_transitions import MovingRig
from tests.support.builders import a_cluster, a_control_plane, a_profile, a_request, shared_prefix_requests
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.facts import (
    FirstTokenEmitted,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    TimerFired,
)
from vertumnus.domain.request import Request
from vertumnus.policy.config import CacheConfig, VertumnusPolicy
from vertumnus.serving.follow_ups import FollowUp, FollowUps
from vertumnus.serving.loop import Loop
from vertumnus.serving.patience import ImpatientClients, with_patience
from vertumnus.serving.replay import replay_facts, replay_inputs
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.workers.fleet import Fleet

MS = 1_000_000
PREFILL_NS, FIRST_TOKEN_NS = 14_408_200, 17_448_200
"""Of 40 tokens at degree 1, and from its start to the first token, the copy of 1.04 ms included."""


class Rig:
    """Simulated workers of degree 1 whose clients give up."""

    def __init__(self, patience_ns: int, workers: int = 1, sigma: float = 0.0, after=None) -> None:
        self.cluster = a_cluster(composition={1: workers})
        self.engine = SimEngine(Durations(a_profile(), 0, sigma))
        self.fleet, control = self.fresh()
        clients = with_patience(self.engine, self.fleet, patience_ns)
        self.records: list[Record] = []
        follow_ups = FollowUps(after or {})
        self.loop = Loop(clients, self.fleet, control, self.record, follow_ups=follow_ups)

    def fresh(self):
        return Fleet(self.cluster, 16), a_control_plane(self.cluster, cache=CacheConfig(scan_interval_s=0.01))

    def record(self, source, body) -> None:
        self.records.append(Record(source, body))

    def told(self, kind: type) -> list:
        return [record.body for record in self.records if type(record.body) is kind]

    def serve(self, *requests: Request) -> None:
        self.loop.serve(iter(requests))
        assert self.fleet.books().pinned_blocks == 0

    def given_up(self) -> list[tuple[int, int]]:
        return [(fact.at, fact.request_id) for fact in self.told(RequestCancelled)]

    def ends(self) -> dict[int, tuple[int, str]]:
        return {fact.request_id: (fact.at, fact.status) for fact in self.told(RequestEnded)}


def test_who_gives_up_by_hand() -> None:
    """One worker, 20 ms: the first is served in time, the second is in its step, the third in the queue."""
    rig = Rig(20 * MS)
    rig.serve(*(a_request(n) for n in range(3)), a_request(3, arrival_ns=10 * MS))
    assert rig.given_up() == [(20 * MS, 1), (20 * MS, 2), (30 * MS, 3)]
    assert [fact.by for fact in rig.told(RequestCancelled)] == ["client"] * 3
    assert [record.source for record in rig.records if type(record.body) is RequestCancelled] == [INPUT] * 3
    assert [(fact.at, fact.request_id) for fact in rig.told(FirstTokenEmitted)] == [(FIRST_TOKEN_NS, 0)]
    assert rig.ends() == {
        0: (FIRST_TOKEN_NS + 3 * 2 * MS, "finished"),
        1: (2 * PREFILL_NS, "cancelled"),
        2: (20 * MS, "cancelled"),
        3: (3 * PREFILL_NS, "cancelled"),
    }


def test_an_answer_that_has_begun_is_waited_for() -> None:
    """However long it takes: 50 tokens of 2 ms each, where patience is 20 ms."""
    rig = Rig(20 * MS)
    rig.serve(a_request(0, output_tokens=50))
    assert rig.given_up() == []
    assert rig.ends() == {0: (FIRST_TOKEN_NS + 49 * 2 * MS, "finished")}


def test_the_next_turn_follows_an_answer_that_was_given_up() -> None:
    """Its wait and its pause of 5 ms count from the end of the one before it, as after a failure."""
    rig = Rig(10 * MS, after={1: [FollowUp(a_request(2), 5 * MS)]})
    rig.serve(a_request(0), a_request(1))
    assert [fact.at for fact in rig.told(RequestArrived)] == [0, 0, 15 * MS]
    assert rig.given_up() == [(10 * MS, 0), (10 * MS, 1), (25 * MS, 2)]


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(1, 80), st.integers(1, 3))
def test_patience_is_kept_to_the_nanosecond(lengths, patience_ms: int, workers: int) -> None:
    """Who is given up is so when its time is over; who is not has its first token by then. It replays."""
    patience_ns = patience_ms * MS + 137
    rig = Rig(patience_ns, workers, sigma=0.06)
    requests = list(shared_prefix_requests(lengths))
    rig.serve(*requests)
    given_up, ends = dict(map(reversed, rig.given_up())), rig.ends()
    tokens = {fact.request_id: fact.at for fact in rig.told(FirstTokenEmitted)}
    assert len(given_up) == len(rig.given_up())
    for request in requests:
        number, due = request.request_id, request.arrival_ns + patience_ns
        if number in given_up:
            assert (given_up[number], ends[number][1]) == (due, "cancelled") and number not in tokens
        else:
            assert ends[number][1] == "finished" and tokens[number] <= due
    assert {fact.name for fact in rig.told(TimerFired)} <= {"scan"}
    assert replay_inputs(rig.records, *rig.fresh()) is None
    assert replay_facts(rig.records, rig.fresh()[1]) is None


def test_patience_counts_from_the_planned_arrival() -> None:
    """A request that is sent late gives up before those that came in time, or as soon as it comes."""
    engine, fleet = SimEngine(Durations(a_profile(), 0, 0.0)), Fleet(a_cluster(), 16)
    clients = ImpatientClients(engine, fleet, 10 * MS)
    for number, (planned_ms, sent_ms) in enumerate([(5, 5), (0, 7), (0, 30)]):
        arrived = RequestArrived(sent_ms * MS, a_request(number, planned_ms * MS))
        engine.schedule(arrived, arrived.at)
    told = []
    while (event := clients.next()) is not None:
        told.append((event.at // MS, type(event).__name__))
        if isinstance(event, RequestArrived):
            fleet.note(event)
    gone = "RequestCancelled"
    arrives = "RequestArrived"
    assert told == [(5, arrives), (7, arrives), (10, gone), (15, gone), (30, arrives), (30, gone)]


def test_without_patience_nothing_stands_between() -> None:
    """A run whose clients wait for ever has the engine itself."""
    engine = SimEngine(Durations(a_profile(), 0, 0.0))
    assert with_patience(engine, Fleet(a_cluster(), 16), None) is engine


class Watching(MovingRig):
    """A moving pool in trouble that notes where each request is when its client gives up."""

    def __init__(self, *words, **chaos) -> None:
        self.places: Counter[str] = Counter()
        super().__init__(*words, **chaos)

    def record(self, source, body) -> None:
        super().record(source, body)
        if type(body) is RequestCancelled:
            self.places[self.place_of(body.request_id)] += 1

    def place_of(self, request_id: int) -> str:
        state = self.fleet._state
        occupancy, worker = state.occupied.get(request_id), state.queued_at.get(request_id)
        if worker is not None:
            (queued,) = (each for each in worker.waiting() if each.request.request_id == request_id)
            if queued.order.after_transfer in worker.awaited_transfers:
                return "queued behind its copy"
            return "queued again" if queued.order.attempt else "queued"
        if occupancy is None:
            return "at the control plane"
        if occupancy.job_id is not None:
            return "being copied" if occupancy.holds_blocks else "being decoded"
        if occupancy.is_handing_off:
            return "in line for a decode rank"
        running = state.workers[occupancy.worker].running
        return "in a step with others" if len(running) > 1 else "in a step"


def test_clients_give_up_wherever_their_request_is() -> None:
    """Over forty seeds of moves, copies and failures; the books balance after every event, and it replays."""
    places: Counter[str] = Counter()
    for seed in range(40):
        moves = [(20 * MS + n * 45 * MS, kind, group) for n, (kind, group) in enumerate(MOVES)]
        rig = Watching(
            seed,
            moves,
            policy=VertumnusPolicy(),
            patience_ns=(10 + 9 * (seed % 12)) * MS,
            step_error=0.1,
            handoff_error=0.05,
            decode_ns=2 * MS,
        )
        rig.run([(n % 3, 2 + (n * 7) % 8, 1 + n % 13) for n in range(50)])
        assert sorted(end.request_id for end in rig.bodies(RequestEnded)) == list(range(50))
        assert rig.control.ledger.total_ns == 0
        assert replay_inputs(rig.records, *rig.fresh()) is None
        places += rig.places
    assert places.keys() == {
        "at the control plane",
        "queued",
        "queued again",
        "queued behind its copy",
        "in a step",
        "in a step with others",
        "in line for a decode rank",
        "being copied",
        "being decoded",
    }


MOVES = [
    ("split", CpGroup(0, 4)),
    ("merge", CpGroup(6, 1)),
    ("split", CpGroup(4, 2)),
    ("merge", CpGroup(0, 2)),
    ("split", CpGroup(6, 2)),
    ("merge", CpGroup(4, 1)),
]
