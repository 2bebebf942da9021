"""A forecast against what then happens: without noise and with the true arrivals it is exact."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_request, shared_prefix_requests
from tests.support.forecasts import SWITCH_S, SimRig
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import OperatorActed, RequestCancelled
from vertumnus.domain.move import Move
from vertumnus.domain.units import to_ns
from vertumnus.forecast.trial import answer, try_move

SPLIT = Move("split", (CpGroup(0, 4),), CpGroup(0, 4).halves)
MERGE = Move("merge", (CpGroup(6, 1), CpGroup(7, 1)), (CpGroup(6, 2),))

shapes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(1, 20)), min_size=5, max_size=60
)
instants = st.integers(0, 150_000_000)


@settings(max_examples=60, deadline=None)
@given(shapes, instants)
def test_staying_is_what_then_happens(lengths, at_ns) -> None:
    """The mean TTFT of those without a first token at the snapshot is, to the ns, the one that comes true."""
    rig = SimRig(list(shared_prefix_requests(lengths)))
    question = rig.question_at(at_ns)
    if question is not None:
        outcome = try_move(question, None)
        assert outcome.ttft_mean_ns == rig.mean_ttft_ns(question.snapshot.at_ns)
        assert outcome.served == outcome.requests


@settings(max_examples=60, deadline=None)
@given(shapes, instants, st.integers(5, 60))
def test_clients_give_up_in_a_forecast_as_they_then_do(lengths, at_ns, patience_ms) -> None:
    """Those who are given up are not served; their wait counts as a TTFT, to the ns."""
    rig = SimRig(list(shared_prefix_requests(lengths)), patience_ms * 1_000_000 + 137)
    question = rig.question_at(at_ns)
    if question is not None:
        outcome, now = try_move(question, None), question.snapshot.at_ns
        gone = [r.body for r in rig.records if type(r.body) is RequestCancelled and r.body.at > now]
        assert outcome.ttft_mean_ns == rig.mean_ttft_ns(now)
        assert outcome.requests - outcome.served == len(gone)


def test_a_forecast_of_a_pool_that_nobody_waits_for() -> None:
    """Prompts of 300 tokens take 25 ms at the least, and clients wait for 15: that is what their TTFT is.

    The first has given up when it is asked, in a step that goes on: it is not counted.
    """
    requests = [a_request(n, arrival_ns=n * 7_000_000, input_tokens=300) for n in range(9)]
    question = SimRig(requests, 15_000_000).question_at(16_000_000)
    assert question is not None and question.snapshot.at_ns == 21_000_000
    outcome = try_move(question, None)
    assert (outcome.served, outcome.requests) == (0, 8)
    assert outcome.ttft_mean_ns == outcome.ttft_p90_ns == 15_000_000


@settings(max_examples=60, deadline=None)
@given(shapes, instants, st.sampled_from([SPLIT, MERGE]))
def test_a_move_is_what_then_happens_when_it_is_made(lengths, at_ns, move) -> None:
    """TTFT, drain and switch are those of the run in which the move is made at that instant."""
    rig = SimRig(list(shared_prefix_requests(lengths)))
    question = rig.question_at(at_ns, (move,))
    if question is None:
        return
    forecast = answer(question)[1]
    now = question.snapshot.at_ns
    true = SimRig(rig.requests)
    wish = OperatorActed(now, 0, "test", move.kind, move.sources)
    true.loop.serve(iter(rig.requests), lambda: true.tell_once(wish))
    assert forecast.ttft_mean_ns == true.mean_ttft_ns(now)
    made = true.reconfigs()
    assert not made or (forecast.drain_ns, forecast.switch_ns) == (made[0].drain_ns, made[0].switch_ns)


def test_an_idle_pool_has_nothing_to_serve_but_can_move() -> None:
    """Without requests the TTFT is undefined, the drain is 0 and the switch what is assumed."""
    rig = SimRig([a_request(0)])
    rig.loop.serve(iter(rig.requests))
    question = rig.question_now((MERGE,))
    stay, moved = answer(question)
    assert (stay.requests, stay.ttft_mean_ns, stay.slo_attainment, stay.drain_ns) == (0, None, None, None)
    assert (moved.ttft_mean_ns, moved.drain_ns, moved.switch_ns) == (None, 0, to_ns(SWITCH_S))


def test_blocks_to_reconcile_by_hand() -> None:
    """Of a prefix of 8 blocks each half of a split lacks the 4 of the other; a merge lacks nothing."""
    rig = SimRig([a_request(0, input_tokens=130, block_keys=tuple(range(8)))])
    rig.loop.serve(iter(rig.requests))
    (holder,) = [worker for worker in rig.fleet.workers.values() if worker.cache.resident]
    move = Move("split", (holder.group,), holder.group.halves)
    assert [each.missing_blocks for each in answer(rig.question_now((move, MERGE)))] == [0, 8, 0]


def test_attainment_weighs_tokens() -> None:
    """Prompts of 40 and 120 tokens, of which the long one is late: 1/4; one has no target."""
    kept = [a_request(n, 1_000_000, 40 + 80 * n) for n in range(3)]
    targets = [10**9, 1, None]
    requests = [
        type(each)(each.request_id, each.arrival_ns, each.input_tokens, 1, each.block_keys, target, None)
        for each, target in zip(kept, targets, strict=True)
    ]
    question = SimRig([a_request(9), *requests]).question_at(0)
    assert question is not None
    outcome = try_move(question._replace(future=tuple(requests)), None)
    assert outcome.slo_attainment == pytest.approx(40 / 160)


def test_a_request_that_nobody_can_hold_is_not_served() -> None:
    """A prompt that only the degree-4 worker holds is left without a first token when that one is split."""
    long = a_request(1, 50_000_000, 16 * 60, block_keys=())
    rig = SimRig([a_request(0, output_tokens=60)])
    question = rig.question_at(20_000_000, (SPLIT,))
    assert question is not None
    stay, moved = answer(question._replace(future=(long,)))
    assert stay.served == stay.requests
    assert moved.served == moved.requests - 1


def test_an_illegal_move_says_why() -> None:
    """A worker that is not there is refused as an operator's wish would be."""
    question = SimRig([a_request(0)]).question_at(0)
    assert question is not None
    absent = CpGroup(4, 4)
    with pytest.raises(ConfigError, match="there is no worker 4x4"):
        try_move(question, Move("split", (absent,), absent.halves))
