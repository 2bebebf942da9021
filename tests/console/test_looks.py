"""What the closer looks say, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time, a_request
from tests.support.recorded import WORKERS, a_header, a_history, a_life, a_merge
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import (
    OperatorActed,
    RankLost,
    RequestArrived,
    StepFailed,
    StepFinished,
    StepItem,
    StepStarted,
    WorkerFormed,
)
from vertumnus.domain.orders import Answer, Prefill
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import LMetricPolicy, PaperPolicy
from vertumnus.policy.placement import Decision, Offer
from vertumnus.policy.policies.why import runner_up
from vertumnus.policy.prefix.pull import Pull
from vertumnus.workers.worker import Queued
from vertumnus_console import hindsight
from vertumnus_console.acts import Acts
from vertumnus_console.busy import Busy, Load
from vertumnus_console.events import events_of
from vertumnus_console.folds import Choice, Folds
from vertumnus_console.looks.queues import _queue
from vertumnus_console.panes import choices
from vertumnus_console.residuals import Fit, Residuals
from vertumnus_console.series import SLICE_NS, SLICES, Series

PAIR, LEFT, RIGHT = WORKERS


def told(folds: Folds, records: list[Record]) -> Folds:
    """Tell *records*."""
    for record in records:
        folds.tell(*record)
    return folds


def test_who_passes_whom() -> None:
    """Of arrivals at 3, 1, 2 s in queue order, the first passes two, the others are passed by it."""
    waiting = [
        Queued(Prefill(n, 0, PAIR, n, (), SECOND, 16, None), a_request(n, arrival_ns=at * SECOND), n)
        for n, at in enumerate((3, 1, 2))
    ]
    rows = list(_queue(waiting, 10 * SECOND))
    assert [(row.place, row.passes, row.passed_by) for row in rows] == [(1, 2, 0), (2, 0, 1), (3, 0, 1)]
    assert [row.waited_ns // SECOND for row in rows] == [7, 9, 8]


@given(st.lists(st.integers(0, 9), max_size=20))
def test_passing_is_counted_pair_by_pair(seconds: list[int]) -> None:
    """Whoever arrived earlier and runs later is passed; equal arrivals pass nobody."""
    waiting = [
        Queued(Prefill(n, 0, PAIR, n, (), SECOND, 0, None), a_request(n, arrival_ns=at * SECOND), n)
        for n, at in enumerate(seconds)
    ]
    rows = list(_queue(waiting, 10 * SECOND))
    for place, row in enumerate(rows):
        assert row.passes == sum(other < seconds[place] for other in seconds[place + 1 :])
        assert row.passed_by == sum(other > seconds[place] for other in seconds[:place])


def test_waits_for_names_what_is_there() -> None:
    """A request that waits for one of its queue names it; one whose copy is under way names the copy."""
    orders = [Prefill(0, 0, PAIR, 0, (), SECOND, 0, None), Prefill(1, 0, PAIR, 1, (0, 99), SECOND, 0, 5)]
    orders.append(Prefill(2, 0, PAIR, 2, (99,), SECOND, 0, 6))
    orders.append(Prefill(3, 0, PAIR, 3, (4,), SECOND, 0, None))
    orders.append(Prefill(4, 1, PAIR, 3, (3,), SECOND, 0, None))  # again, after its step failed
    rows = _queue([Queued(order, a_request(order.request_id), n) for n, order in enumerate(orders)], 0)
    assert [row.waits_for for row in rows] == ["", "request 0", "copy 6", "", "request 3"]


def a_decision() -> Decision:
    """Three offers, of which the policy left one out, and a worker that was no candidate."""
    offers = tuple(
        Offer(worker, 512, queue * SECOND, SECOND, 0) for worker, queue in ((PAIR, 2), (LEFT, 0), (RIGHT, 1))
    )
    costs = (3 * SECOND, SECOND, None)
    excluded = ((CpGroup(4, 4), "drained by ann"),)
    return Decision(5 * SECOND, 7, 0, offers, costs, excluded, 1)


def test_why_this_worker() -> None:
    """The next best is the next in cost, not what was left out; the page has all of them, weighed."""
    decision = a_decision()
    choice = Choice(decision, PaperPolicy(beta=2.0, gpu_time_weight=0.5))
    assert runner_up(decision) == 0
    assert choices.row(choice) == (
        "0:05.0", "7", " 2x1", "512", "0", "1000", "0", "0", "1000", " 0x2 +2000"
    )  # fmt: skip
    page = choices.told(choice).plain.splitlines()
    assert page[1] == "policy paper, beta 2, lambda 0.5; times in ms"
    assert page[2].startswith("2x1 costs least, 2,000.0 ms less than 0x2: ")
    rows = {line.split()[0]: line.split()[1:] for line in page[4:8]}
    assert list(rows) == ["worker", "2x1", "0x2", "3x1"]
    assert rows["2x1"] == ["512", "0", "2000", "0", "0", "1000", "chosen"]
    assert rows["0x2"][-3:] == ["3000", "next", "best"] and rows["3x1"][-2:] == ["not", "allowed"]
    assert page[-1].split(maxsplit=1) == ["4x4", "left out: drained by ann"]
    nobody = Choice(decision._replace(offers=(), costs=(), chosen=None), choice.policy)
    assert choices.row(nobody)[2] == " nobody" and runner_up(nobody.decision) is None


def test_a_page_tells_pulls_and_other_costs() -> None:
    """Pending and pulled blocks stand by their worker; a policy that counts something else says what."""
    pull = Pull(LEFT, 5, 2, 14, 512, SECOND, PAIR)
    offer = Offer(LEFT, 512, SECOND, SECOND, 0, SECOND, 3, pull=pull)
    decision = Decision(0, 7, 0, (offer,), (12_345,), (), 0)
    page = choices.told(Choice(decision, LMetricPolicy())).plain.splitlines()
    assert page[1].endswith("times in ms, cost in tokens x requests")
    assert page[2] == "2x1 was the only worker that could take it"
    assert page[5].split() == ["2x1", "512", "3", "12<0x2", "1000", "1000", "–", "1000", "12.3k", "chosen"]


def test_of_many_candidates_the_cheapest_are_kept() -> None:
    """Of 100 the 64 that cost least, in their order, with the chosen one, and how many are left out."""
    offers = tuple(Offer(CpGroup(2 * place, 2), 0, 0, SECOND, 0) for place in range(100))
    costs = tuple((place * 37 % 100) * SECOND if place % 10 else None for place in range(100))
    chosen = costs.index(99 * SECOND)  # not the cheapest, and not among the 64 that are
    folds = Folds(a_header())
    folds.observe(Decision(0, 7, 0, offers, costs, (), chosen), PaperPolicy())
    (kept,) = folds.choices
    assert kept.dearer == 36 and len(kept.decision.offers) == len(kept.decision.costs) == 64
    assert kept.decision.offers[kept.decision.chosen] == offers[chosen]
    places = [offer.worker.first_rank // 2 for offer in kept.decision.offers]
    assert places == sorted(places) and [costs[place] for place in places] == list(kept.decision.costs)
    least = sorted(cost for cost in costs if cost is not None)[:63]
    assert sorted(kept.decision.costs)[:63] == least
    assert (
        choices.told(kept).plain.splitlines()[-1] == "and 36 that cost more: vertumnus explain has them all"
    )


def test_what_came_of_a_placement() -> None:
    """What explain says of that placement, not of another of the same request, with the better worker."""
    candidates = [{"worker": "0x2", "hindsight_s": 1.0}, {"worker": "2x1", "hindsight_s": 0.75}]
    first = {
        "at_s": 5.0, "started_s": None, "prefilled_s": None, "first_token_s": None,
        "ended": "returned: draining", "regret_s": None, "candidates": candidates,
    }  # fmt: skip
    second = {
        "at_s": 6.0, "started_s": 6.5, "prefilled_s": 7.5, "first_token_s": 8.0, "ended": "finished",
        "regret_s": 0.25, "candidates": candidates,
    }  # fmt: skip
    told = {"arrival_s": 5.0, "placements": [first, second]}
    assert hindsight.lines(told, 5.0) == ("outcome      returned: draining",)
    assert hindsight.lines(told, 6.0) == (
        "outcome      started after 500 ms, prefill 1.00 s, TTFT 3.00 s, finished",
        "regret       250 ms: 2x1 would have been that much sooner",
    )
    assert hindsight.lines(told, 7.0) == ("outcome      the log does not have it yet",)


def test_residuals_compare_with_the_model() -> None:
    """Steps that take 20 % and 40 % longer than Eq. 2 says: bias 30 %, and 200 more of it is a drift."""
    residuals = Residuals(a_prefill_time())
    for number, factor in enumerate([1.2, 1.4] * 10):
        predicted = a_prefill_time().step_shares(2, [(84, 16)])[0]
        for body in (
            RequestArrived(0, a_request(number, input_tokens=100)),
            StepStarted(0, number, PAIR, 0, (StepItem(number, 0, 16),), ()),
            StepFinished(0, number, PAIR, round(predicted * factor), ()),
        ):
            residuals.handlers[type(body)](body)
    (fit,) = residuals.fits()
    assert (fit.degree, fit.steps, len(fit.errors)) == (2, 20, 20)
    assert fit.mean_error == pytest.approx(0.3, abs=1e-6) and fit.recent_bias == pytest.approx(0.3, abs=1e-6)
    assert fit.recent_p90 == pytest.approx(0.4, abs=1e-6)
    assert not fit.has_drifted  # it was always so: the model is wrong, but it does not drift
    assert Fit(2, 500, 0.05, 0.12, 0.2, ()).has_drifted


def test_series_keeps_the_newest_slices() -> None:
    """Percentiles by slice, None where nothing ended, and no more slices than are shown."""
    series = Series()
    for place, ttft in ((0, 1), (0, 3), (2, 5)):
        series.add(place * SLICE_NS, ttft * SECOND)
    assert series.percentile(2 * SLICE_NS, 50) == (2.0, None, 5.0)
    series.add(1_000 * SLICE_NS, SECOND)
    assert series.percentile(1_000 * SLICE_NS, 90) == (*[None] * (SLICES - 1), 1.0)


def test_acts_are_told_with_their_answers() -> None:
    """Who wanted what, what became of it, and the speed that an accepted one set."""
    acts = Acts(20.0)
    wishes = [
        (OperatorActed(1, 0, "ann", "merge", (LEFT, RIGHT)), Answer(0, False, "not now")),
        (OperatorActed(2, 1, "bob", "speed", value=5), Answer(1, True, "5x")),
        (OperatorActed(3, 2, "bob", "tune", setting="policy.beta", value=2.0), Answer(2, True, "1 -> 2")),
        (
            OperatorActed(4, 3, "bob", "tune", setting="policy.beta", value=-2.0),
            Answer(3, False, "tune policy.beta: beta must be at least 1, got -2"),
        ),
    ]
    for wish, answer in wishes:
        acts.handlers[OperatorActed](wish)
        acts.handlers[Answer](answer)
    assert [str(act) for act in acts.acts] == [
        "ann: merge 2x1 + 3x1 refused, not now",
        "bob: speed 5 accepted, 5x",
        "bob: tune policy.beta 2.0 accepted, 1 -> 2",
        "bob: tune policy.beta -2.0 refused, beta must be at least 1, got -2",
    ]
    assert acts.speed == 5.0


def test_a_move_is_an_event_with_its_times() -> None:
    """Who began it, how long it drained and switched; the wish stands below it."""
    folds = told(Folds(a_header()), [*a_history(2), *a_merge(20 * SECOND)])
    move, act = (event.text for event in events_of(folds)[:2])
    assert move == "merge 2x1 + 3x1 -> 2x2 by ann, drain 4.00 s, switch 1.00 s, 1 redirected"
    assert act == "ann: merge 2x1 + 3x1 accepted"


def test_a_minute_after_a_move_stands_beside_the_one_before() -> None:
    """TTFT of the requests that ended in the minute before the switch, and in the minute since."""
    folds = told(Folds(a_header()), [*a_history(2), *a_merge(20 * SECOND)])  # the switch is over at 25 s
    late = [(80, 2 * SECOND), (84, SECOND), (86, 0)]  # ends 3.5 s after it waited and began
    lives = [a_life(a_request(n, arrival_ns=at * SECOND), queue_ns=q) for n, (at, q) in enumerate(late, 2)]
    told(folds, lives[0][:-1] + lives[1][:-1])
    assert not folds.aftermath.afters
    told(folds, [lives[0][-1]])  # at 87.5 s
    told(folds, lives[2])
    (after,) = folds.aftermath.afters
    assert after.t_ns == 87.5 * SECOND and (after.before.requests, after.since.requests) == (2, 1)
    assert after.before.ttft_p90_s == pytest.approx(2.5 + 0.9 * 0.25)
    texts = [event.text for event in events_of(folds) if event.kind == "after"]
    assert texts == ["2x2 a minute on: P90 2.73 s -> 4.50 s, met 100% -> –"]


def test_how_busy_a_worker_was() -> None:
    """Of the last 60 s a step of 20 s, another's half that lies in them, and one under way for 10 s."""
    busy = Busy()
    for body in (
        StepStarted(0, 0, PAIR, 0, (), ()),
        StepFinished(20 * SECOND, 0, PAIR, 1, ()),
        StepStarted(40 * SECOND, 1, PAIR, 0, (), ()),
        StepFailed(60 * SECOND, 1, PAIR, "", ends_worker=False),
        StepStarted(60 * SECOND, 2, PAIR, 0, (), ()),
    ):
        busy.handlers[type(body)](body)
    assert busy.load(PAIR, 70 * SECOND) == Load(3, pytest.approx((10 + 20 + 10) / 60))
    assert busy.load(LEFT, 70 * SECOND) == Load(0, 0.0) and busy.load(PAIR, 0).share == 0.0
    busy.handlers[RankLost](RankLost(75 * SECOND, 1, 0, "gone"))
    assert busy.load(PAIR, 100 * SECOND) == Load(2, pytest.approx((20 + 15) / 60))
    busy.handlers[WorkerFormed](WorkerFormed(65 * SECOND, PAIR, 1, ()))
    assert busy.load(PAIR, 100 * SECOND) == Load(1, pytest.approx(10 / 35))  # of its life, what lies in it


def test_the_tape_keeps_the_newest_records() -> None:
    """Orders carry no time: they get that of the fact before them."""
    folds = Folds(a_header())
    folds.tell(INPUT, RequestArrived(5, a_request(0)))
    folds.tell(ORDER, Answer(0, True, ""))
    folds.tell(FACT, StepFinished(9, 0, PAIR, 1, ()))
    assert [(each.t_ns, each.source) for each in folds.tape] == [(5, INPUT), (5, ORDER), (9, FACT)]
