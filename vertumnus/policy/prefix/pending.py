"""Blocks that placed requests will leave at their workers, beyond what those hold (D4).

A request's whole blocks are pending at its worker from its placement to the end of its step. Who asks
for them there later reuses them, provided that it runs after one of those who bring them. Workers are
told apart by their place in the pool's order.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from vertumnus.domain.units import BlockKey, Blocks, RequestId

Bringers: TypeAlias = RequestId | OrderedDict[RequestId, None]
"""Who brings a block to one worker: most often one request, else all in order of their placement.

The first one is looked at for each arrival, and most often the first to go (which leaves a dict with a gap
before its first entry, and an OrderedDict with none).
"""


class Promise(Struct, gc=False):
    """Leading blocks that a worker will hold once a request has run there."""

    blocks: Blocks
    by: RequestId
    """The first placed of those who bring the last of them."""


class PendingBlocks:
    """Who brings which block where."""

    def __init__(self) -> None:
        self._bringers: dict[BlockKey, dict[int, Bringers]] = {}
        """By place."""
        self._brought: dict[RequestId, tuple[int, Sequence[BlockKey]]] = {}

    def __len__(self) -> int:
        return len(self._brought)

    def add(self, request_id: RequestId, place: int, keys: Sequence[BlockKey]) -> None:
        """Note that *request_id* brings *keys* to the worker at *place*."""
        if not keys:
            return
        bringers = self._bringers
        self._brought[request_id] = (place, keys)
        for key in keys:
            places = bringers.get(key)
            if places is None:
                bringers[key] = {place: request_id}
                continue
            there = places.get(place)
            if there is None:
                places[place] = request_id
            elif isinstance(there, OrderedDict):
                there[request_id] = None
            else:
                places[place] = OrderedDict.fromkeys((there, request_id))

    def remove(self, request_id: RequestId) -> None:
        """Forget what *request_id* brings: it is there now, or will never be."""
        place, keys = self._brought.pop(request_id, (0, ()))
        bringers = self._bringers
        for key in keys:
            places = bringers[key]
            there = places[place]
            if isinstance(there, OrderedDict) and len(there) > 1:
                del there[request_id]
            elif len(places) > 1:
                del places[place]
            else:
                del bringers[key]

    def promises(self, keys: Sequence[BlockKey], held: Sequence[Blocks]) -> Mapping[int, list[Promise]]:
        """Return, by place, what a prompt of *keys* could count on beyond its *held* leading blocks.

        A place's promises are in order of their blocks, one for each bringer of a stretch of them. What this
        costs is blocks times workers, however many requests bring them.
        """
        promises: dict[int, list[Promise]] = {}
        least, most = min(held), max(held)
        for number, places in enumerate(map(self._bringers.get, keys[least:]), least):
            if places is None:
                if number >= most:
                    break  # nobody holds more, and no promise reaches past a block that nobody brings
                continue
            for place, there in places.items():
                promised = promises.get(place)
                if promised is None:
                    if held[place] == number:
                        promises[place] = [Promise(number + 1, _first(there))]
                    continue
                last = promised[-1]
                if last.blocks == number:
                    first = _first(there)
                    if last.by == first:
                        last.blocks += 1
                    else:
                        promised.append(Promise(number + 1, first))
        return promises

    def recompose(self, moved: Mapping[int, int]) -> None:
        """Take new places, *moved* by the old ones."""
        brought, self._brought, self._bringers = self._brought, {}, {}
        for request_id, (place, keys) in brought.items():
            self.add(request_id, moved[place], keys)


def _first(there: Bringers) -> RequestId:
    return next(iter(there)) if isinstance(there, OrderedDict) else there
