"""Admission control: who is let in, who is queued behind the others, who is turned away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.support.builders import a_control_plane, a_profile, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    Installed,
    RequestArrived,
    RequestEnded,
    RequestsReturned,
    StepFinished,
    StepItem,
    StepStarted,
)
from vertumnus.domain.orders import Prefill, Reject
from vertumnus.domain.request import Request
from vertumnus.policy.admission import ACCEPTED, MIN_RESIDUALS, Admission, AdmissionConfig, Verdict
from vertumnus.policy.placement import Offer

MS = 1_000_000
AFTER = 3_040_000
"""`a_profile` on 40 tokens: hand-off of 1 ms + 40 us, decode step of 2 ms [ns]."""
SHORT, LONG = 100 * MS, 900 * MS
"""Targets of two length classes."""
HOPELESS = 10_000 * MS


def an_admission(**changed: float) -> Admission:
    """One that judges."""
    return Admission(AdmissionConfig(enabled=True, **changed), a_profile())  # type: ignore[arg-type]


def a_targeted(request_id: int = 0, target_ns: int | None = SHORT, arrival_ns: int = 0) -> Request:
    """A request of 40 tokens."""
    return structs.replace(a_request(request_id, arrival_ns), ttft_target_ns=target_ns)


def an_offer(queue_ns: int = 0, service_ns: int = 0) -> Offer:
    """What a worker of degree 1 offers."""
    return Offer(CpGroup(0, 1), 0, queue_ns, service_ns, 0)


@pytest.mark.parametrize(
    ("queue_ms", "waited_ms", "kind"),
    [(66, 0, "accept"), (67, 0, "queue"), (66, 1, "queue"), (166, 0, "queue"), (167, 0, "reject")],
)
def test_the_predicted_ttft_decides(queue_ms: int, waited_ms: int, kind: str) -> None:
    """q + 30 ms + 3.04 ms after the prefill + what it has waited, against 100 and 200 ms."""
    verdict = an_admission().judge(
        a_targeted(arrival_ns=5 * MS), an_offer(queue_ms * MS, 30 * MS), (5 + waited_ms) * MS
    )
    assert verdict == Verdict(kind, (queue_ms + 30 + waited_ms) * MS + AFTER)  # type: ignore[arg-type]


def test_nobody_is_judged_when_it_is_off_or_without_a_target() -> None:
    """Off is the default; a request that was promised nothing is let in."""
    off = Admission(AdmissionConfig(), a_profile())
    assert off.judge(a_targeted(), an_offer(HOPELESS), 0) is ACCEPTED
    assert an_admission().judge(a_targeted(target_ns=None), an_offer(HOPELESS), 0) is ACCEPTED


def test_who_was_let_in_is_placed_again_in_any_case() -> None:
    """Until it has ended; then its number means another request."""
    admission = an_admission()
    assert admission.judge(a_targeted(), an_offer(), 0).kind == "accept"
    admission.returned(0)
    assert admission.judge(a_targeted(), an_offer(HOPELESS), 0) is ACCEPTED
    admission.ended(0)
    assert admission.judge(a_targeted(), an_offer(HOPELESS), 0).kind == "reject"


@pytest.mark.parametrize(
    ("late_ms", "margin_ms"),
    [([7] * 20, 7), ([-7] * 20, 0), ([7] * 19, 0), ([*range(20)], 15), ([1] * 16 + [9] * 4, 1)],
    ids=["all late", "all early", "too few", "the 16th of twenty", "a fifth is left uncovered"],
)
def test_the_margin_covers_a_share_of_the_residuals(late_ms: list[int], margin_ms: int) -> None:
    """At 0.8 the one that four fifths do not exceed, of requests of the class alone; never below 0."""
    admission = an_admission()
    for number, late in enumerate(late_ms):
        admission.judge(a_targeted(number), an_offer(service_ns=10 * MS), 0)
        admission.prefilled(number, (10 + late) * MS)
    assert admission.judge(a_targeted(50), an_offer(), 0).predicted_ns == AFTER + margin_ms * MS
    assert admission.judge(a_targeted(51, LONG), an_offer(), 0).predicted_ns == AFTER


def test_what_was_placed_again_teaches_nothing() -> None:
    """Its prefill ends elsewhere, behind others."""
    admission = an_admission()
    for number in range(MIN_RESIDUALS):
        admission.judge(a_targeted(number), an_offer(), 0)
        admission.returned(number)
        admission.prefilled(number, 50 * MS)
    assert admission.judge(a_targeted(50), an_offer(), 0).predicted_ns == AFTER


def test_no_class_is_rejected_much_more_than_all_are() -> None:
    """Every other request is long and hopeless: at most r/100 - (r + 0)/200 <= 0.05 of them are rejected."""
    admission = an_admission()
    kinds = []
    for number in range(100):
        admission.judge(a_targeted(2 * number), an_offer(), 0)
        kinds.append(admission.judge(a_targeted(2 * number + 1, LONG), an_offer(HOPELESS), 0).kind)
    assert set(kinds) == {"queue", "reject"} and 9 <= kinds.count("reject") <= 10


def test_everybody_may_be_rejected_when_everybody_is_hopeless() -> None:
    """Fairness is between the classes; it lets nobody in."""
    admission = an_admission()
    kinds = {
        admission.judge(a_targeted(number, (SHORT, LONG)[number % 2]), an_offer(HOPELESS), 0).kind
        for number in range(50)
    }
    assert kinds == {"reject"}


@given(
    st.lists(st.tuples(st.sampled_from([SHORT, LONG, 5_000 * MS]), st.booleans()), max_size=120),
    st.sampled_from([0.0, 0.05, 0.3]),
)
def test_a_rejection_leaves_its_class_within_the_bound(
    arrivals: list[tuple[int, bool]], unfairness: float
) -> None:
    """Whatever comes: the class's share of rejections exceeds that of all by `unfairness` at most."""
    admission = an_admission(unfairness=unfairness)
    judged: list[tuple[int, bool]] = []
    for number, (target, is_hopeless) in enumerate(arrivals):
        offer = an_offer(HOPELESS if is_hopeless else 0)
        is_rejected = admission.judge(a_targeted(number, target), offer, 0).kind == "reject"
        judged.append((target, is_rejected))
        assert is_hopeless or not is_rejected
        if is_rejected:
            of_class = [rejected for cls, rejected in judged if cls == target]
            of_all = sum(rejected for _, rejected in judged) / len(judged)
            assert sum(of_class) / len(of_class) <= of_all + unfairness + 1e-9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"accept_within": 0.0}, "accept_within <= queue_within, got accept_within 0.0, queue_within 2.0"),
        ({"queue_within": 0.5}, "accept_within <= queue_within, got accept_within 1.0, queue_within 0.5"),
        ({"deferral_s": -1.0}, "deferral_s must be at least 0, got -1.0"),
        ({"residual_share": 1.0}, r"residual_share must be in \[0, 1\), got 1.0"),
        ({"unfairness": 1.5}, r"unfairness must be in \[0, 1\], got 1.5"),
        ({"window": 5}, r"window must be in \[20, 100000\], got 5"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, float], message: str) -> None:
    """With the value found and the bound."""
    with pytest.raises(ValueError, match=message):
        AdmissionConfig(**changed)  # type: ignore[arg-type]


def test_the_control_plane_turns_away_with_reason_and_time() -> None:
    """A prefill alone misses a target of 1 ms by far: nothing is reserved, and the client is told why."""
    control = a_control_plane(admission=an_admission())
    (order,) = control.handle(RequestArrived(0, a_targeted(target_ns=MS)))
    assert isinstance(order, Reject) and order.status == "rejected"
    assert order.reason.startswith("admission: predicted TTFT 0.0") and "target 0.001 s" in order.reason
    assert order.retry_after_s is not None and order.retry_after_s > 0.0
    assert control.ledger.total_ns == 0
    control.handle(RequestEnded(0, 0, "rejected", 0, order.reason))
    control.check()


def test_who_is_queued_runs_behind_those_who_can_meet_their_target() -> None:
    """Its priority is put back by the deferral, 2 s of the queue's order."""
    control = a_control_plane(admission=an_admission(queue_within=1e6))
    (prompt,) = control.handle(RequestArrived(0, a_targeted(0, target_ns=MS)))
    (other,) = control.handle(RequestArrived(0, a_targeted(1, target_ns=HOPELESS)))
    assert isinstance(prompt, Prefill) and isinstance(other, Prefill)
    assert (prompt.priority, other.priority) == (2_000 * MS, 0)


def test_the_control_plane_learns_from_the_ends_of_steps() -> None:
    """20 prefills that end 1 s after their prediction make the next one hopeless; a redirected one stays."""
    control = a_control_plane(admission=an_admission())
    for number in range(MIN_RESIDUALS):
        now = number * HOPELESS
        request = a_targeted(number, 500 * MS, now)
        (order,) = control.handle(RequestArrived(now, request))
        assert isinstance(order, Prefill)
        control.handle(StepStarted(now, number, order.worker, 0, (StepItem(number, 0, 0),), ()))
        late = now + order.service_ns + 1_000 * MS
        control.handle(StepFinished(late, number, order.worker, MS, (Installed(number, 0, None),)))
        control.handle(RequestEnded(late, number, "finished", 4))
    now = MIN_RESIDUALS * HOPELESS
    (order,) = control.handle(RequestArrived(now, a_targeted(90, 500 * MS, now)))
    assert isinstance(order, Reject)


def test_a_redirected_request_is_not_judged_again() -> None:
    """It was let in; that its worker drained is no fault of its own."""
    control = a_control_plane(admission=an_admission())
    (order,) = control.handle(RequestArrived(0, a_targeted(target_ns=50 * MS)))
    assert isinstance(order, Prefill)
    back = RequestsReturned(HOPELESS, order.worker, (0,), "drained", False, False)
    (again,) = control.handle(back)
    assert isinstance(again, Prefill)
