"""Closed-loop sessions: a follow-up comes after the answer before it, and every request is served once."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.test_loop import Rig
from tests.support.builders import a_request
from vertumnus.domain.codec import Record
from vertumnus.domain.facts import RequestArrived, RequestEnded
from vertumnus.domain.request import Request
from vertumnus.serving.follow_ups import FollowUp, FollowUps
from vertumnus.serving.loop import Loop
from vertumnus.serving.replay import replay_inputs

MS = 1_000_000


def _serve(arrivals: list[Request], follow_ups: FollowUps) -> Rig:
    rig = Rig(sigma=0.0)
    rig.loop = Loop(rig.engine, *rig.fresh(), rig.record, follow_ups=follow_ups)
    rig.serve(iter(arrivals))
    return rig


def test_a_follow_up_waits_for_answer_and_pause() -> None:
    """By hand: the first answer ends at 21.4482 ms; the next turn comes 5 ms later, or when it says."""
    first, second, third = (a_request(n, arrival_ns=n * MS, output_tokens=3) for n in range(3))
    after = {0: [FollowUp(second, 5 * MS)], 1: [FollowUp(third, 0)]}
    rig = _serve([first], FollowUps(after))
    ends = [end.at for end in rig.told(RequestEnded)]
    arrivals = [fact.at for fact in rig.told(RequestArrived)]
    assert ends[0] == pytest.approx(14_408_200 + 1_040_000 + 6_000_000, abs=1)
    assert arrivals == [0, ends[0] + 5 * MS, ends[1]]
    assert [fact.request.arrival_ns for fact in rig.told(RequestArrived)] == arrivals
    late = _serve([first], FollowUps({0: [FollowUp(a_request(1, arrival_ns=900 * MS), 0)]}))
    assert [fact.at for fact in late.told(RequestArrived)] == [0, 900 * MS]


TREES = st.lists(
    st.tuples(st.integers(0, 40), st.none() | st.integers(0, 100), st.integers(0, 20)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=50)
@given(TREES)
def test_every_request_is_served_once_and_in_its_turn(tree: list[tuple[int, int | None, int]]) -> None:
    """Whatever continues what: each arrives once, none before its time or its predecessor's end and pause."""
    arrivals, after, pauses, before = [], defaultdict(list), {}, {}
    for number, (at_ms, parent, pause_ms) in enumerate(sorted(tree, key=lambda each: each[0])):
        request = a_request(number, arrival_ns=at_ms * MS)
        if parent is None or number == 0:
            arrivals.append(request)
        else:
            before[number], pauses[number] = parent % number, pause_ms * MS
            after[parent % number].append(FollowUp(request, pause_ms * MS))
    rig = _serve(arrivals, FollowUps(after))
    ended = {fact.request_id: fact.at for fact in rig.told(RequestEnded)}
    arrived = {fact.request.request_id: fact for fact in rig.told(RequestArrived)}
    assert len(rig.told(RequestArrived)) == len(arrived) == len(ended) == len(tree)
    for number, fact in arrived.items():
        planned = sorted(tree, key=lambda each: each[0])[number][0] * MS
        released = ended[before[number]] + pauses[number] if number in before else planned
        assert fact.at == fact.request.arrival_ns == max(planned, released)


def test_a_closed_loop_replays_exactly() -> None:
    """The log's inputs give the same facts and orders, though nobody holds follow-ups back."""
    requests = [a_request(n, arrival_ns=n * MS) for n in range(6)]
    rig = _serve(requests[:2], FollowUps({0: [FollowUp(requests[2], 0)], 2: [FollowUp(requests[3], MS)]}))
    records: list[Record] = rig.records
    assert replay_inputs(iter(records), *rig.fresh()) is None
    assert {fact.request_id for fact in rig.told(RequestEnded)} == {0, 1, 2, 3}
