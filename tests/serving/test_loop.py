"""One loop, one log: causes before effects, every request to its end, and no clock but the engine's."""

import datetime
import time
from collections.abc import Iterator

import pytest

from tests.support.builders import a_cluster, a_control_plane, a_profile, a_request, shared_prefix_requests
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record, encode_batch
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import RequestArrived, RequestCancelled, RequestEnded, TimerFired
from vertumnus.domain.jobs import StepDone
from vertumnus.domain.orders import Prefill, SetTimer
from vertumnus.domain.request import Request
from vertumnus.policy.config import CacheConfig
from vertumnus.serving.loop import Loop
from vertumnus.serving.replay import Difference, replay_facts, replay_inputs
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.workers.fleet import Effects, Fleet

MIX = [(n % 3, n % 6, 1 + n % 9) for n in range(40)]


class Rig:
    """The toy pool on virtual time."""

    def __init__(self, seed: int = 0, sigma: float = 0.06, cache: CacheConfig | None = None) -> None:
        self.engine = SimEngine(Durations(a_profile(), seed, sigma))
        self.records: list[Record] = []
        self.cluster, self.cache = a_cluster(), cache
        self.loop = Loop(self.engine, *self.fresh(), self.record)

    def fresh(self):
        return Fleet(self.cluster, 16), a_control_plane(self.cluster, cache=self.cache)

    def record(self, source, body) -> None:
        self.records.append(Record(source, body))

    def serve(self, requests: Iterator[Request]) -> list[Record]:
        self.loop.serve(requests)
        return self.records

    def told(self, kind: type) -> list:
        return [record.body for record in self.records if type(record.body) is kind]


def names(records: list[Record]) -> list[tuple[int, str]]:
    """Return the source and kind of each record."""
    return [(record.source, type(record.body).__name__) for record in records]


def test_the_log_of_one_request() -> None:
    """Every input, fact and order of one request's life, in the order of cause and effect."""
    assert names(Rig().serve(iter([a_request(0)]))) == [
        (ORDER, "SetTimer"),
        (INPUT, "RequestArrived"),
        (ORDER, "Prefill"),
        (FACT, "StepStarted"),
        (INPUT, "StepDone"),
        (FACT, "StepFinished"),
        (INPUT, "HandoffDone"),
        (FACT, "HandoffFinished"),
        (INPUT, "FirstToken"),
        (FACT, "FirstTokenEmitted"),
        (INPUT, "DecodeDone"),
        (FACT, "RequestEnded"),
    ]


def test_times_of_one_request_by_hand() -> None:
    """E_1(40) = 10 + 0.4 + 4 + 0.0082 ms from arrival, 1.04 ms of copy, then 2 ms a token."""
    rig = Rig(sigma=0.0)
    rig.serve(iter([a_request(0, arrival_ns=1_000_000, output_tokens=3)]))
    (end,) = rig.told(RequestEnded)
    assert end.at == pytest.approx(1_000_000 + 14_408_200 + 1_040_000 + 3 * 2_000_000, abs=1)
    assert end.output_tokens == 3


def test_time_never_goes_back_and_everyone_ends() -> None:
    """In the log `at` never decreases, and each request ends once."""
    rig = Rig()
    records = rig.serve(shared_prefix_requests(MIX))
    times = [record.body.at for record in records if record.source != ORDER]
    assert times == sorted(times)
    assert sorted(end.request_id for end in rig.told(RequestEnded)) == list(range(40))
    assert (rig.loop.arrived, rig.loop.ended) == (40, 40)


def test_no_requests_no_events() -> None:
    """An empty stream ends at once, with the timer set and nothing else."""
    assert names(Rig().serve(iter(()))) == [(ORDER, "SetTimer")]


def test_timers_go_on_while_requests_are_open() -> None:
    """Scans every 10 ms from the start, each order before the next firing."""
    rig = Rig(cache=CacheConfig(scan_interval_s=0.01))
    rig.serve(iter([a_request(0, output_tokens=20)]))
    due = [timer.due_ns for timer in rig.told(TimerFired)]
    assert due == [10_000_000 * (n + 1) for n in range(len(due))]
    assert [order.at_ns for order in rig.told(SetTimer)][:-1] == due


def test_arrivals_are_pulled_one_ahead() -> None:
    """The stream is asked for the next request when one arrives, never for the whole trace (D10)."""
    rig = Rig()
    pulled: list[int] = []
    ahead: set[int] = set()

    def stream() -> Iterator[Request]:
        for request in shared_prefix_requests(MIX):
            pulled.append(request.request_id)
            yield request

    rig.loop.serve(stream(), lambda: ahead.add(len(pulled) - rig.loop.arrived))
    assert ahead == {0, 1}


def test_a_posted_wish_reaches_the_request() -> None:
    """A cancel that is posted to the engine ends its request as cancelled."""
    rig = Rig()

    def wish() -> None:
        if type(rig.records[-1].body).__name__ == "StepStarted":
            rig.engine.post(RequestCancelled(0, 0, "client"))

    rig.loop.serve(iter([a_request(0)]), wish)
    assert [end.status for end in rig.told(RequestEnded)] == ["cancelled"]


class Forgetting(SimEngine):
    """An engine that delivers arrivals and loses jobs and timers."""

    def schedule(self, fact, at_ns) -> None:
        if type(fact) is RequestArrived:
            super().schedule(fact, at_ns)

    def submit(self, job) -> None:
        del job


def test_a_lost_job_is_our_bug() -> None:
    """With nothing to wait for and a request open the loop raises instead of ending."""
    rig = Rig()
    loop = Loop(Forgetting(Durations(a_profile(), 0, 0.0)), *rig.fresh(), rig.record)
    with pytest.raises(InvariantError, match="nothing is under way and 1 request is open"):
        loop.serve(iter([a_request(0)]))


class Losing(Fleet):
    """A fleet that loses a request: no job is under way for it."""

    def carry_out(self, order, now):
        del order, now
        return Effects([], [])


def test_timers_do_not_hide_a_lost_request() -> None:
    """A timer always follows the last one, so the loop asks at each whether anything is under way."""
    rig = Rig(cache=CacheConfig(scan_interval_s=0.01))
    _, control = rig.fresh()
    loop = Loop(rig.engine, Losing(rig.cluster, 16), control, rig.record)
    with pytest.raises(InvariantError, match="no job is under way and 1 request is open"):
        loop.serve(iter([a_request(0)]))


def test_simulated_time_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated run works, and is the same, when every clock of the machine raises (case 22)."""
    before = encode_batch(Rig().serve(shared_prefix_requests(MIX)))

    class NoDate(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            raise AssertionError("the wall clock was read")

    def no_clock(*_arguments: object) -> None:
        raise AssertionError("the wall clock was read")

    clocks = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    with monkeypatch.context() as patch:
        for name in (*clocks, *(f"{clock}_ns" for clock in clocks), "sleep", "localtime", "gmtime"):
            patch.setattr(time, name, no_clock)
        patch.setattr(datetime, "datetime", NoDate)
        records = Rig().serve(shared_prefix_requests(MIX))
    assert encode_batch(records) == before


def test_seeds_make_runs() -> None:
    """The same seed gives the same bytes, another seed other ones."""
    one, same, other = (encode_batch(Rig(seed).serve(shared_prefix_requests(MIX))) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_simulated_run_replays_exactly() -> None:
    """Its facts give its orders, its inputs give everything; a cut log replays up to the cut (D9)."""
    rig = Rig()
    records = rig.serve(shared_prefix_requests(MIX))
    for cut in (len(records), *range(50, 60)):
        assert replay_facts(records[:cut], rig.fresh()[1]) is None
        assert replay_inputs(records[:cut], *rig.fresh()) is None


def test_a_replay_finds_a_changed_input() -> None:
    """A job that took longer in the log than the fact says is found at the fact."""
    rig = Rig()
    records = rig.serve(shared_prefix_requests(MIX[:5]))
    place = next(i for i, record in enumerate(records) if type(record.body) is StepDone)
    done = records[place].body
    records[place] = Record(INPUT, StepDone(done.at, done.job_id, done.compute_ns + 1))
    difference = replay_inputs(records, *rig.fresh())
    assert difference is not None
    assert (difference.place, difference.recorded) == (place + 1, records[place + 1])
    assert difference.replayed.body.compute_ns == done.compute_ns + 1


def test_a_replay_of_facts_finds_a_missing_or_made_up_order() -> None:
    """An order that the log lacks, or that nothing asked for, is a difference where it should be."""
    rig = Rig()
    records = rig.serve(shared_prefix_requests(MIX[:5]))
    place = next(i for i, record in enumerate(records) if type(record.body) is Prefill)
    lacking = replay_facts(records[:place] + records[place + 1 :], rig.fresh()[1])
    assert lacking == Difference(place, records[place + 1], records[place])
    made_up = replay_facts(records[: place + 1] + records[place:], rig.fresh()[1])
    assert made_up == Difference(place + 1, records[place], None)


@pytest.mark.parametrize("change", ["dropped", "doubled"])
def test_a_replay_finds_records_too_many_or_too_few(change: str) -> None:
    """A fact that is missing, or one that nothing caused, is a difference at its place."""
    rig = Rig()
    records = rig.serve(shared_prefix_requests(MIX[:5]))
    place = next(i for i, record in enumerate(records) if type(record.body).__name__ == "StepFinished")
    changed = records[:place] + (
        records[place + 1 :] if change == "dropped" else records[place : place + 1] + records[place:]
    )
    difference = replay_inputs(changed, *rig.fresh())
    assert difference is not None
    assert difference.place == (place if change == "dropped" else place + 1)
