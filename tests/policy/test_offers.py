"""P, q, s and the extra GPU time of each candidate, by hand (sec. 5.2-5.3)."""

import pytest

from tests.support.builders import BLOCK_TOKENS, a_prefill_time, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Pricer

QUAD, PAIR, SINGLE = GROUPS = (CpGroup(0, 4), CpGroup(4, 2), CpGroup(6, 1))
PREDICT = a_prefill_time().predict


def workers(*groups: CpGroup) -> list[WorkerState]:
    """Candidates at their places in the index's order."""
    return [WorkerState(GROUPS.index(group), group, 99) for group in groups]


def a_pricer(ledger: Ledger | None = None, queue_estimate: str = "outstanding") -> Pricer:
    """A pricer over the toy profile."""
    return Pricer(a_prefill_time(), ledger or Ledger(GROUPS), BLOCK_TOKENS, queue_estimate)


def test_each_candidate_has_its_own_prefix_and_service_time() -> None:
    """Three, one and no block held: P, and s = E at the worker's degree with that P (Eq. 3)."""
    offers = a_pricer().offers(a_request(0, input_tokens=100), [3, 1, 0], workers(*GROUPS), 0)
    assert [offer.worker for offer in offers] == list(GROUPS)
    assert [offer.cached_tokens for offer in offers] == [48, 16, 0]
    assert [offer.service_ns for offer in offers] == [
        PREDICT(4, 52, 48),
        PREDICT(2, 84, 16),
        PREDICT(1, 100, 0),
    ]


def test_extra_gpu_time_is_against_the_smallest_candidate() -> None:
    """C*s - C_min*E_Cmin(R, P) at the worker's own R and P; 0 at the smallest degree itself."""
    offers = a_pricer().offers(a_request(0, input_tokens=100), [3, 1, 0], workers(*GROUPS), 0)
    assert [offer.extra_gpu_ns for offer in offers] == [
        4 * PREDICT(4, 52, 48) - PREDICT(1, 52, 48),
        2 * PREDICT(2, 84, 16) - PREDICT(1, 84, 16),
        0,
    ]


def test_only_candidates_set_the_smallest_degree() -> None:
    """Without the degree-1 worker among the candidates, degree 2 is the smallest."""
    offers = a_pricer().offers(a_request(0, input_tokens=100), [3, 1, 0], workers(QUAD, PAIR), 0)
    assert [offer.extra_gpu_ns for offer in offers] == [4 * PREDICT(4, 52, 48) - 2 * PREDICT(2, 52, 48), 0]


@pytest.mark.parametrize(("estimate", "queue_ns"), [("outstanding", 150), ("remaining", 110)])
def test_queue_estimates(estimate: str, queue_ns: int) -> None:
    """The formula sums full times, the prose what remains of them (sec. 5.3): 150 or 110 at 70."""
    ledger = Ledger(GROUPS)
    ledger.reserve(0, PAIR, 100)
    ledger.reserve(1, PAIR, 50)
    ledger.start(PAIR, 100, 30)
    offers = a_pricer(ledger, estimate).offers(a_request(2), [0, 0, 0], workers(*GROUPS), 70)
    assert [offer.queue_ns for offer in offers] == [0, queue_ns, 0]


@pytest.mark.parametrize(("input_tokens", "cached"), [(48, 32), (49, 48), (40, 32), (1, 0)])
def test_a_hit_leaves_a_token_to_compute(input_tokens: int, cached: int) -> None:
    """However many blocks are held, P is whole blocks and leaves R >= 1 (cases 12 and 15)."""
    (offer,) = a_pricer().offers(a_request(0, input_tokens=input_tokens), [0, 9, 0], workers(PAIR), 0)
    assert (offer.cached_tokens, offer.service_ns) == (cached, PREDICT(2, input_tokens - cached, cached))


def test_no_candidates_no_offers() -> None:
    """Nobody to price."""
    assert a_pricer().offers(a_request(0), [0, 0, 0], [], 0) == ()
