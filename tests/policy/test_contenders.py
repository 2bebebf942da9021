"""The cheapest offer found without making them all is the one that all of them show."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.builders import a_cluster, a_control_plane, a_prefill_time, shared_prefix_requests
from tests.support.chaos import ChaosEngine
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.config import VertumnusPolicy
from vertumnus.policy.contenders import contenders
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.placement import Decision, Observer, Offer, cheapest
from vertumnus.serving.loop import Loop
from vertumnus.workers.fleet import Fleet

GROUPS = [
    CpGroup(place * 4 + offset, degree) for place in range(3) for offset, degree in ((0, 2), (2, 1), (3, 1))
]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9))
def test_the_choice_is_that_of_all_offers(terms) -> None:
    """Bounds below the cost by any amount: the same worker wins, ties included."""
    workers = [WorkerState(place, GROUPS[place], 9) for place in range(len(terms))]
    costs = [sum(each) for each in terms]

    def an_offer(worker: WorkerState) -> Offer:
        return Offer(worker.group, 0, costs[worker.place], 0, 0)

    bounds = [bound for bound, _ in terms]
    made, told = contenders(workers, bounds, an_offer, lambda offer: offer.queue_ns)
    everybody = [an_offer(worker) for worker in workers]
    assert told == tuple(offer.queue_ns for offer in made)
    assert made[cheapest(made, told)] == everybody[cheapest(everybody, costs)]


def test_exact_bounds_make_one_offer() -> None:
    """Where the bounds are the costs only the winner's offer is made."""
    workers = [WorkerState(place, group, 9) for place, group in enumerate(GROUPS)]
    costs = [5, 3, 3, 4, 9, 9, 3, 7, 8]

    def cost(worker: WorkerState) -> int:
        return costs[worker.place]

    made, _ = contenders(workers, costs, lambda w: Offer(w.group, 0, cost(w), 0, 0), lambda o: o.queue_ns)
    assert [offer.worker for offer in made] == [GROUPS[1]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"externality": False},
        {"remaining_queue": False},
        {"shortest_first": False},
        {"pending_prefix": False},
        {"pull": False},
    ],
)
def test_a_watched_run_is_the_run(seed: int, switches: dict[str, bool]) -> None:
    """Under load, drift, copies and failures: every choice is the same, be all offers made or few."""
    orders = [_run(seed, VertumnusPolicy(**switches), watched) for watched in (False, True)]
    assert orders[0] == orders[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_longer_prefix_may_cost_more(seed: int) -> None:
    """Where any prefix has a price of its own, few blocks promised are worse than none: the same choices."""
    dear = {degree: replace(time, per_prefix_ns=4e6) for degree, time in a_prefill_time().by_degree.items()}
    orders = [_run(seed, VertumnusPolicy(), watched, PrefillTimeModel(dear)) for watched in (False, True)]
    assert orders[0] == orders[1]


def _run(
    seed: int, policy: VertumnusPolicy, watched: bool, times: PrefillTimeModel | None = None
) -> list[object]:
    random = Random(seed)
    cluster = a_cluster({4: 2, 2: 3, 1: 6}, blocks_per_rank=24, degrees=(1, 2, 4))
    control = a_control_plane(cluster, policy, correction=CorrectionConfig(), prefill_time=times)
    decisions: list[Decision] = []
    control.watch(Observer(decisions.append, lambda request_id: watched))
    told: list[object] = []
    engine = ChaosEngine(seed, handoff_error=0.05, cancel=0.1)
    lengths = [(random.randrange(5), random.randrange(12), random.randrange(1, 20)) for _ in range(120)]
    loop = Loop(engine, Fleet(cluster, 16), control, lambda source, body: told.append(body))
    loop.serve(shared_prefix_requests(lengths, gap_ns=1_500_000))
    assert len(decisions) >= 120 * watched
    return told
