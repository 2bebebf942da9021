"""Baselines that look at one thing only."""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Offer


class HomoPolicy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="homo"):
    """All workers at one degree; least predicted wait plus cache-aware service time."""


class LeastLoadedPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="least_loaded"
):
    """The worker with the least outstanding predicted work, whatever it has cached."""


class RoundRobinPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="round_robin"
):
    """Each eligible worker in turn."""


def work(_request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
    """Return q + s of each offer [ns]."""
    return [offer.queue_ns + offer.service_ns for offer in offers]


def load(_request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
    """Return q of each offer [ns]."""
    return [offer.queue_ns for offer in offers]


class RoundRobinCosts:
    """Cost is the distance from the worker after the last one chosen, by first rank."""

    def __init__(self) -> None:
        self._last_rank = -1

    def __call__(self, _request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return the turn of each offer, and take the first."""
        order = sorted(range(len(offers)), key=lambda i: self._distance(offers[i].worker))
        self._last_rank = offers[order[0]].worker.first_rank
        costs: list[Nanoseconds | None] = [None] * len(offers)
        for distance, place in enumerate(order):
            costs[place] = distance
        return costs

    def _distance(self, worker: CpGroup) -> tuple[bool, int]:
        return worker.first_rank <= self._last_rank, worker.first_rank
