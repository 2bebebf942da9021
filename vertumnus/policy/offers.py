"""What each candidate would mean for a request: P, q, s and the extra GPU time (sec. 5.2-5.3)."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
from vertumnus.policy.candidates import Excluded, WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer

Kind: TypeAlias = tuple[int, Blocks]
"""A degree, and how many leading blocks of a prompt are held."""


class Price(Struct, frozen=True, gc=False):
    """What a request costs at one degree with so much of a prefix."""

    cached_tokens: Tokens
    service_ns: Nanoseconds
    extra_gpu_ns: Nanoseconds


class Prices(dict[Kind, Price]):
    """The prices of one request by kind, each worked out when it is asked for first."""

    def __init__(
        self,
        prefill_time: PrefillTimeModel,
        input_tokens: Tokens,
        block_tokens: Tokens,
        smallest: int,
    ) -> None:
        """Price a prompt of *input_tokens* against *smallest*, C_min: the smallest degree of a candidate."""
        self._predict = prefill_time.predictor()
        self._length = input_tokens
        self._block_tokens = block_tokens
        self._most = (input_tokens - 1) // block_tokens  # one token is always computed
        self._smallest = smallest

    def __missing__(self, kind: Kind) -> Price:
        """Return the price at a degree with so many leading blocks of the prompt in the cache."""
        degree, held = kind
        cached = min(held, self._most) * self._block_tokens
        service, smallest = self._predict(degree, self._length - cached, cached), self._smallest
        extra = 0
        if degree != smallest:
            extra = degree * service - smallest * self[smallest, held].service_ns
        price = self[kind] = Price(cached, service, extra)
        return price


class Eligible(Struct, gc=False):
    """Who may serve one request, and what it costs there."""

    candidates: Sequence[WorkerState]
    excluded: tuple[Excluded, ...]
    held: Sequence[Blocks]
    """Leading blocks of the prompt at every worker, by its place."""
    kinds: Sequence[Kind]
    """Of the candidates."""
    prices: Prices

    def longest(self) -> dict[int, Blocks]:
        """Return the leading blocks that a candidate of each degree holds at most, by ascending degree."""
        return dict(sorted(set(self.kinds)))


class Pricer:
    """Prices candidates by the ledger, as published."""

    def __init__(self, ledger: Ledger, queue_estimate: Literal["outstanding", "remaining"]) -> None:
        self._ledger = ledger
        self._is_remaining = queue_estimate == "remaining"

    def offers(self, _request: Request, among: Eligible, now: Nanoseconds) -> tuple[Offer, ...]:
        """Return one offer for each candidate."""
        waits = self._ledger.remaining(now) if self._is_remaining else self._ledger.outstanding()
        offers = []
        prices = among.prices
        for worker, kind in zip(among.candidates, among.kinds, strict=True):
            price, wait = prices[kind], waits[worker.place]
            offers.append(
                Offer(worker.group, price.cached_tokens, wait, price.service_ns, price.extra_gpu_ns)
            )
        return tuple(offers)
