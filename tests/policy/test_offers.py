"""P, q, s and the extra GPU time of each candidate, by hand (sec. 5.2-5.3)."""

import pytest

from tests.support.builders import BLOCK_TOKENS, a_prefill_time, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Eligible, Pricer, Prices
from vertumnus.policy.placement import Offer

QUAD, PAIR, SINGLE = GROUPS = (CpGroup(0, 4), CpGroup(4, 2), CpGroup(6, 1))
PREDICT = a_prefill_time().predict


def workers(*groups: CpGroup) -> list[WorkerState]:
    """Candidates at their places in the index's order."""
    return [WorkerState(GROUPS.index(group), group, 99) for group in groups]


def offers(
    held: list[int],
    candidates: list[WorkerState],
    *,
    input_tokens: int = 100,
    ledger: Ledger | None = None,
    queue_estimate: str = "outstanding",
    now: int = 0,
) -> tuple[Offer, ...]:
    """The offers of *candidates*, over the toy profile."""
    kinds = [(worker.group.degree, held[worker.place]) for worker in candidates]
    smallest = min((degree for degree, _ in kinds), default=0)
    prices = Prices(a_prefill_time(), input_tokens, BLOCK_TOKENS, smallest)
    pricer = Pricer(ledger or Ledger(GROUPS), queue_estimate)
    return pricer.offers(
        a_request(0, input_tokens=input_tokens), Eligible(candidates, (), held, kinds, prices), now
    )


def test_each_candidate_has_its_own_prefix_and_service_time() -> None:
    """Three, one and no block held: P, and s = E at the worker's degree with that P (Eq. 3)."""
    made = offers([3, 1, 0], workers(*GROUPS))
    assert [offer.worker for offer in made] == list(GROUPS)
    assert [offer.cached_tokens for offer in made] == [48, 16, 0]
    assert [offer.service_ns for offer in made] == [
        PREDICT(4, 52, 48),
        PREDICT(2, 84, 16),
        PREDICT(1, 100, 0),
    ]


def test_extra_gpu_time_is_against_the_smallest_candidate() -> None:
    """C*s - C_min*E_Cmin(R, P) at the worker's own R and P; 0 at the smallest degree itself."""
    made = offers([3, 1, 0], workers(*GROUPS))
    assert [offer.extra_gpu_ns for offer in made] == [
        4 * PREDICT(4, 52, 48) - PREDICT(1, 52, 48),
        2 * PREDICT(2, 84, 16) - PREDICT(1, 84, 16),
        0,
    ]


def test_only_candidates_set_the_smallest_degree() -> None:
    """Without the degree-1 worker among the candidates, degree 2 is the smallest."""
    made = offers([3, 1, 0], workers(QUAD, PAIR))
    assert [offer.extra_gpu_ns for offer in made] == [4 * PREDICT(4, 52, 48) - 2 * PREDICT(2, 52, 48), 0]


@pytest.mark.parametrize(("estimate", "queue_ns"), [("outstanding", 150), ("remaining", 110)])
def test_queue_estimates(estimate: str, queue_ns: int) -> None:
    """The formula sums full times, the prose what remains of them (sec. 5.3): 150 or 110 at 70."""
    ledger = Ledger(GROUPS)
    ledger.reserve(0, PAIR, 100)
    ledger.reserve(1, PAIR, 50)
    ledger.start(PAIR, 100, 30)
    made = offers([0, 0, 0], workers(*GROUPS), ledger=ledger, queue_estimate=estimate, now=70)
    assert [offer.queue_ns for offer in made] == [0, queue_ns, 0]


@pytest.mark.parametrize(("input_tokens", "cached"), [(48, 32), (49, 48), (40, 32), (1, 0)])
def test_a_hit_leaves_a_token_to_compute(input_tokens: int, cached: int) -> None:
    """However many blocks are held, P is whole blocks and leaves R >= 1 (cases 12 and 15)."""
    (offer,) = offers([0, 9, 0], workers(PAIR), input_tokens=input_tokens)
    assert (offer.cached_tokens, offer.service_ns) == (cached, PREDICT(2, input_tokens - cached, cached))


def test_no_candidates_no_offers() -> None:
    """Nobody to price."""
    assert offers([0, 0, 0], []) == ()
