"""What each candidate would mean for a request: P, q, s and the extra GPU time (sec. 5.2-5.3)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
from vertumnus.policy.candidates import WorkerState, smallest_degree
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer


class Price(NamedTuple):
    """What a request costs at one degree with so much of a prefix."""

    cached_tokens: Tokens
    service_ns: Nanoseconds
    extra_gpu_ns: Nanoseconds


class Prices:
    """The prices of one request, each worked out once."""

    def __init__(
        self,
        prefill_time: PrefillTimeModel,
        input_tokens: Tokens,
        block_tokens: Tokens,
        smallest: int,
    ) -> None:
        """Price a prompt of *input_tokens* against *smallest*, C_min: the smallest degree of a candidate."""
        self._predict = prefill_time.predict
        self._length = input_tokens
        self._block_tokens = block_tokens
        self._most = (input_tokens - 1) // block_tokens  # one token is always computed
        self._smallest = smallest
        self._known: dict[tuple[int, Blocks], Price] = {}

    def at(self, degree: int, held: Blocks) -> Price:
        """Return the price at *degree* with *held* leading blocks of the prompt in the cache."""
        key = (degree, held)
        price = self._known.get(key)
        if price is None:
            price = self._known[key] = self._work_out(degree, held)
        return price

    def _work_out(self, degree: int, held: Blocks) -> Price:
        cached = min(held, self._most) * self._block_tokens
        uncached, smallest = self._length - cached, self._smallest
        service = self._predict(degree, uncached, cached)
        extra = 0
        if degree != smallest:
            extra = degree * service - smallest * self._predict(smallest, uncached, cached)
        return Price(cached, service, extra)


class Pricer:
    """Prices candidates with the prefill-time model and the ledger, as published."""

    def __init__(
        self,
        prefill_time: PrefillTimeModel,
        ledger: Ledger,
        block_tokens: Tokens,
        queue_estimate: Literal["outstanding", "remaining"],
    ) -> None:
        self._prefill_time = prefill_time
        self._ledger = ledger
        self._block_tokens = block_tokens
        self._is_remaining = queue_estimate == "remaining"

    def offers(
        self, request: Request, held: Sequence[Blocks], candidates: Sequence[WorkerState], now: Nanoseconds
    ) -> tuple[Offer, ...]:
        """Return one offer for each candidate; *held* are its leading blocks, by the worker's place."""
        smallest = smallest_degree(candidates)
        price_at = Prices(self._prefill_time, request.input_tokens, self._block_tokens, smallest).at
        waits = self._ledger.remaining(now) if self._is_remaining else self._ledger.outstanding()
        offers = []
        for worker in candidates:
            place, group = worker.place, worker.group
            cached, service, extra = price_at(group[1], held[place])
            offers.append(Offer(group, cached, waits[place], service, extra))
        return tuple(offers)
