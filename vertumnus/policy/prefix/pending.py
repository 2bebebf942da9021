"""Blocks that placed requests will leave at their workers, beyond what those hold (D4).

A request's whole blocks are pending at its worker from its placement to the end of its step. Who asks
for them there later reuses them, provided that it runs after one of those who bring them. Workers are
told apart by their place in the pool's order.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vertumnus.domain.units import BlockKey, Blocks, RequestId


class Promise(NamedTuple):
    """Leading blocks that a worker will hold once a request has run there."""

    blocks: Blocks
    by: RequestId
    """The first placed of those who bring the last of them."""


class PendingBlocks:
    """Who brings which block where."""

    def __init__(self) -> None:
        self._bringers: dict[BlockKey, dict[int, list[RequestId]]] = {}
        """Requests that bring a block to a place, in order of their placement."""
        self._brought: dict[RequestId, tuple[int, Sequence[BlockKey]]] = {}

    def __len__(self) -> int:
        return len(self._brought)

    def add(self, request_id: RequestId, place: int, keys: Sequence[BlockKey]) -> None:
        """Note that *request_id* brings *keys* to the worker at *place*."""
        if not keys:
            return
        self._brought[request_id] = (place, keys)
        bringers = self._bringers
        for key in keys:
            bringers.setdefault(key, {}).setdefault(place, []).append(request_id)

    def remove(self, request_id: RequestId) -> None:
        """Forget what *request_id* brings: it is there now, or will never be."""
        brought = self._brought.pop(request_id, None)
        if brought is None:
            return
        place, keys = brought
        for key in keys:
            places = self._bringers[key]
            ids = places[place]
            ids.remove(request_id)
            if not ids:
                del places[place]
                if not places:
                    del self._bringers[key]

    def promises(self, keys: Sequence[BlockKey], held: Sequence[Blocks]) -> Mapping[int, list[Promise]]:
        """Return, by place, what a prompt of *keys* could count on beyond its *held* leading blocks.

        A place's promises are in order of their blocks, one for each bringer of a stretch of them.
        """
        promises: dict[int, list[Promise]] = {}
        bringers = self._bringers
        for number, key in enumerate(keys):
            places = bringers.get(key)
            if places is None:
                continue
            for place, ids in places.items():
                promised = promises.get(place)
                if (promised[-1].blocks if promised else held[place]) != number:
                    continue
                promise = Promise(number + 1, ids[0])
                if promised is None:
                    promises[place] = [promise]
                elif promised[-1].by == promise.by:
                    promised[-1] = promise
                else:
                    promised.append(promise)
        return promises

    def recompose(self, moved: Mapping[int, int]) -> None:
        """Take new places, *moved* by the old ones; a place that is not among them brings nothing."""
        brought, self._brought, self._bringers = self._brought, {}, {}
        for request_id, (place, keys) in brought.items():
            self.add(request_id, moved[place], keys)
