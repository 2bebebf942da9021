"""The switches of `policy=vertumnus`, one by one, by hand (A, B, D, E)."""

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.control_rig import KEYS, LEFT, PAIR, PREDICT, RIGHT, Rig, a_long_hit
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import RequestArrived
from vertumnus.domain.orders import Prefill, Transfer
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import PaperPolicy, VertumnusPolicy

ONE = CpGroup(0, 1)
OFF = {
    "remaining_queue": False,
    "pending_prefix": False,
    "pull": False,
    "shortest_first": False,
    "externality": False,
}


def lone_worker(**switches) -> Rig:
    """A pool of one degree-1 worker; what is not named is off."""
    return Rig(VertumnusPolicy(**{**OFF, **switches}), a_cluster({1: 1}, blocks_per_rank=256))


def arrive(rig: Rig, request_id: int, tokens: int, at: int = 0) -> Prefill:
    """Let a prompt with content of its own arrive."""
    rig.now = at
    return rig.arrive(a_request(request_id, arrival_ns=at, input_tokens=tokens))


# ---- A: remaining-aware queue -----------------------------------------------------------------------


@pytest.mark.parametrize(("aware", "used"), [(False, 0), (True, 3_000_000)])
def test_what_the_running_step_has_used_is_no_wait(aware: bool, used: int) -> None:
    """3 ms into a step the wait is the rest of it, and with the switch off all of it."""
    rig = lone_worker(remaining_queue=aware)
    running = arrive(rig, 0, 40)
    rig.start(running)
    arrive(rig, 1, 40, at=3_000_000)
    assert rig.decisions[1].offers[0].queue_ns == running.service_ns - used


def test_an_overdue_step_is_about_to_end() -> None:
    """A step that runs longer than predicted leaves no negative wait."""
    rig = lone_worker(remaining_queue=True)
    rig.start(arrive(rig, 0, 40))
    arrive(rig, 1, 40, at=5 * SECOND)
    assert rig.decisions[1].offers[0].queue_ns == 0


def test_only_jobs_that_run_before_are_waited_for() -> None:
    """Shortest first: a short prompt waits for the running step alone, a long one for the queue too."""
    rig = lone_worker(remaining_queue=True, shortest_first=True)
    running = arrive(rig, 0, 400)
    rig.start(running)
    queued = arrive(rig, 1, 400)
    arrive(rig, 2, 40)
    arrive(rig, 3, 800)
    waits = [decision.offers[0].queue_ns for decision in rig.decisions[2:]]
    assert waits == [running.service_ns, running.service_ns + queued.service_ns + PREDICT(1, 40, 0)]


# ---- B: pending-aware prefix ------------------------------------------------------------------------


@pytest.mark.parametrize(("aware", "cached"), [(False, 0), (True, 128)])
def test_blocks_of_a_queued_prompt_count(aware: bool, cached: int) -> None:
    """The second of two prompts of one prefix is priced as a hit on what the first will leave."""
    rig = lone_worker(pending_prefix=aware)
    rig.arrive(a_long_hit(0))
    second = rig.arrive(a_long_hit(1))
    assert (second.expected_cached, second.service_ns) == (cached, PREDICT(1, 136 - cached, cached))
    assert second.after == ((0,) if aware else ())


def test_blocks_of_a_running_prompt_count_without_a_guard() -> None:
    """One step at a time: whoever runs now has run before the next one starts."""
    rig = lone_worker(pending_prefix=True)
    rig.start(rig.arrive(a_long_hit(0)))
    second = rig.arrive(a_long_hit(1))
    assert (second.expected_cached, second.after) == (128, ())


def test_pending_blocks_draw_their_readers() -> None:
    """While the pair computes a prefix, an equal prompt goes there rather than to an idle worker."""
    rig = Rig(VertumnusPolicy())
    first = rig.arrive(a_long_hit(0))
    rig.start(first)
    rig.now = first.service_ns - 1_000_000  # 1 ms before its end
    assert rig.arrive(a_long_hit(1)).worker == first.worker


def test_what_will_not_come_is_not_counted() -> None:
    """A cancelled prompt brings nothing."""
    rig = lone_worker(pending_prefix=True)
    rig.arrive(a_long_hit(0))
    rig.end(0)
    assert rig.arrive(a_long_hit(1)).expected_cached == 0


def test_a_short_stretch_of_a_long_prompt_is_not_waited_for() -> None:
    """One common block, brought by a prompt of 200 blocks: cheaper to compute it than to run after that."""
    rig = Rig(VertumnusPolicy(externality=False), a_cluster({1: 1}, blocks_per_rank=256))
    rig.start(arrive(rig, 0, 400))
    rig.arrive(a_request(1, input_tokens=3_200, block_keys=tuple(range(1, 201))))
    short = rig.arrive(a_request(2, input_tokens=20, block_keys=(1,)))
    assert (short.expected_cached, short.after) == (0, ())


# ---- C: pull at routing time -------------------------------------------------------------------------


def busy_holder(**switches) -> Rig:
    """RIGHT alone holds the prefix and runs a step of 1 s; LEFT and the pair are idle."""
    rig = Rig(VertumnusPolicy(**switches))
    rig.seed(RIGHT)
    rig.control.ledger.reserve(100, RIGHT, SECOND, 0)
    rig.control.ledger.begin(100, SECOND)
    rig.control.ledger.start(RIGHT, SECOND, 0)
    return rig


def test_a_prefix_is_fetched_from_a_busy_holder() -> None:
    """The copy is ordered first, the prefill waits for it and is priced as a hit that starts after it."""
    rig = busy_holder(gpu_time_weight=0.0)
    copy, order = rig.tell(RequestArrived(0, a_long_hit(0)))
    assert isinstance(copy, Transfer) and isinstance(order, Prefill)
    assert (copy.reason, copy.destination, set(copy.sources)) == ("pull", order.worker, {3})
    assert (order.after_transfer, order.expected_cached) == (copy.transfer_id, 128)
    assert order.service_ns == PREDICT(order.worker.degree, 8, 128)
    (decision,) = rig.decisions
    chosen = decision.offers[decision.chosen]
    assert chosen.pull is not None and chosen.queue_ns == chosen.pull.ready_ns > 3_000_000


def test_without_pulls_the_prefix_is_computed_again() -> None:
    """The switch off: no copy, no hit, an idle worker."""
    rig = busy_holder(pull=False)
    order = rig.arrive(a_long_hit(0))
    assert order.worker != RIGHT
    assert (order.expected_cached, order.after_transfer) == (0, None)


def test_a_second_request_joins_the_copy() -> None:
    """While the blocks are on their way to a worker nobody orders them again for it."""
    rig = Rig(VertumnusPolicy(pending_prefix=False), a_cluster({1: 2}))
    holder = CpGroup(1, 1)
    rig.seed(holder)
    rig.control.ledger.reserve(100, holder, SECOND, 0)
    copy, first = rig.tell(RequestArrived(0, a_long_hit(0)))
    (second,) = rig.tell(RequestArrived(0, a_long_hit(1)))
    assert first.worker == second.worker == ONE
    assert first.after_transfer == second.after_transfer == copy.transfer_id


# ---- D: shortest first, with ageing and the guard ----------------------------------------------------


def test_the_order_is_service_less_a_tenth_of_the_wait() -> None:
    """A job of s is overtaken by one of s' that comes later by less than 10*(s - s')."""
    rig = lone_worker(shortest_first=True)
    rig.start(arrive(rig, 0, 40))
    arrive(rig, 1, 2_000)
    gap = PREDICT(1, 2_000, 0) - PREDICT(1, 40, 0)
    arrive(rig, 2, 40, at=10 * gap - 10)
    assert rig.control.ledger.queued(ONE) == [2, 1]
    arrive(rig, 3, 40, at=10 * gap + 10)
    assert rig.control.ledger.queued(ONE) == [2, 1, 3]


def test_first_come_first_served_without_it() -> None:
    """Priorities are the arrivals."""
    rig = lone_worker()
    assert [arrive(rig, number, tokens, at=number).priority for number, tokens in enumerate((400, 40))] == [
        0,
        1,
    ]


def test_a_reader_runs_after_its_bringer() -> None:
    """A prompt that is short because of pending blocks gets the place behind those who bring them."""
    rig = lone_worker(shortest_first=True, pending_prefix=True)
    rig.start(arrive(rig, 0, 40))
    bringer = rig.arrive(a_long_hit(1))
    reader = rig.arrive(a_long_hit(2))
    assert reader.after == (1,)
    assert reader.service_ns < bringer.service_ns
    assert reader.priority == bringer.priority
    assert rig.control.ledger.queued(ONE) == [1, 2]
    assert rig.decisions[2].offers[0].queue_ns == PREDICT(1, 40, 0) + bringer.service_ns


# ---- E: externality ---------------------------------------------------------------------------------


@pytest.mark.parametrize("charged", [False, True])
def test_a_job_pays_for_those_it_would_delay(charged: bool) -> None:
    """Two longer jobs are queued: a short one is charged its service time twice."""
    rig = lone_worker(shortest_first=True, externality=charged)
    rig.start(arrive(rig, 0, 40))
    for number in (1, 2):
        arrive(rig, number, 2_000)
    short = arrive(rig, 3, 40)
    decision = rig.decisions[3]
    (offer,) = decision.offers
    assert offer.externality_ns == 2 * short.service_ns
    assert decision.costs == (offer.queue_ns + (3 if charged else 1) * short.service_ns,)


def test_a_short_job_leaves_long_ones_alone() -> None:
    """With the charge a short prompt takes the busier worker whose queue it does not delay."""

    def rig_with_queues(externality: bool) -> Rig:
        rig = Rig(
            VertumnusPolicy(externality=externality, pending_prefix=False),
            a_cluster({1: 2}, blocks_per_rank=999),
        )
        left, right = CpGroup(0, 1), CpGroup(1, 1)
        for place, worker in enumerate((left, right)):
            rig.control.ledger.reserve(100 + place, worker, 20_000_000, 0)
            rig.control.ledger.begin(100 + place, 20_000_000)
        rig.control.ledger.start(left, 10_000_000, 0)
        rig.control.ledger.start(right, 12_000_000, 0)
        for number in range(3):
            rig.control.ledger.reserve(200 + number, left, SECOND, 10 * SECOND)
        return rig

    assert rig_with_queues(False).arrive(a_request(0)).worker == CpGroup(0, 1)
    assert rig_with_queues(True).arrive(a_request(0)).worker == CpGroup(1, 1)


# ---- together ---------------------------------------------------------------------------------------


def test_with_everything_off_it_is_the_published_policy() -> None:
    """The same offers and choices as `policy=paper`, on loaded workers and known prefixes."""
    rigs = [Rig(PaperPolicy()), Rig(VertumnusPolicy(**OFF))]
    for rig in rigs:
        rig.seed(RIGHT)
        rig.seed(PAIR, KEYS[:3])
        for number in range(12):
            rig.now = number * 1_000_000
            order = rig.arrive(
                a_long_hit(number, extra=1 + 40 * (number % 3)) if number % 2 else a_request(number, rig.now)
            )
            if number % 4 == 0:
                rig.start(order)
    published, ours = (rig.decisions for rig in rigs)
    assert [d.costs for d in published] == [d.costs for d in ours]
    assert {d.offers[d.chosen].worker for d in ours} == {LEFT, RIGHT, PAIR}
    assert [d.chosen for d in published] == [d.chosen for d in ours]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: VertumnusPolicy(beta=0.5), "beta must be at least 1, got 0.5"),
        (lambda: VertumnusPolicy(gpu_time_weight=-1.0), "gpu_time_weight must be at least 0, got -1.0"),
        (lambda: VertumnusPolicy(ageing=0.0), "ageing must be above 0, got 0.0"),
        (lambda: VertumnusPolicy(ageing=float("nan")), "ageing must be above 0, got nan"),
    ],
)
def test_parameters_out_of_range_are_named(make, complaint: str) -> None:
    """Each parameter is refused with its value and bound."""
    with pytest.raises(ValueError, match=complaint):
        make()
