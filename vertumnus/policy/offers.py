"""What each candidate would mean for a request: P, q, s and the extra GPU time (sec. 5.2-5.3)."""

from collections.abc import Sequence
from typing import Literal

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer


class Pricer:
    """Prices candidates with the prefill-time model and the ledger."""

    def __init__(
        self,
        prefill_time: PrefillTimeModel,
        ledger: Ledger,
        block_tokens: Tokens,
        queue_estimate: Literal["outstanding", "remaining"],
    ) -> None:
        self._predict = prefill_time.predict
        self._ledger = ledger
        self._block_tokens = block_tokens
        self._is_remaining = queue_estimate == "remaining"

    def offers(
        self, request: Request, held: Sequence[Blocks], candidates: Sequence[WorkerState], now: Nanoseconds
    ) -> tuple[Offer, ...]:
        """Return one offer for each candidate; *held* are its leading blocks, by the worker's place."""
        length, block_tokens, predict = request.input_tokens, self._block_tokens, self._predict
        most = (length - 1) // block_tokens  # one token is always computed
        smallest = min((worker.group.degree for worker in candidates), default=0)
        waits = self._ledger.remaining(now) if self._is_remaining else self._ledger.outstanding()
        priced: dict[tuple[int, Blocks], tuple[Tokens, Nanoseconds, Nanoseconds]] = {}
        offers = []
        for worker in candidates:
            place, group = worker.place, worker.group
            degree = group[1]
            key = (degree, held[place])
            price = priced.get(key)
            if price is None:
                cached = min(key[1], most) * block_tokens
                service = predict(degree, length - cached, cached)
                extra = 0
                if degree != smallest:
                    extra = degree * service - smallest * predict(smallest, length - cached, cached)
                price = priced[key] = (cached, service, extra)
            offers.append(Offer(group, price[0], waits[place], price[1], price[2]))
        return tuple(offers)
