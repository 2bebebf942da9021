"""Blocks that placed requests will leave at their workers, beyond what those hold (D4).

A request's whole blocks are pending at its worker from its placement to the end of its step. Who asks
for them there later reuses them, provided that it runs after one of those who bring them. Workers are
told apart by their place in the pool's order.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.units import BlockKey, Blocks, RequestId


class Bringer(NamedTuple):
    """A placed request."""

    place: int
    request_id: RequestId


class Promise(Struct, gc=False):
    """Leading blocks that a worker will hold once a request has run there."""

    blocks: Blocks
    by: RequestId
    """The first placed of those who bring the last of them."""


class PendingBlocks:
    """Who brings which block where."""

    def __init__(self) -> None:
        self._bringers: dict[BlockKey, list[Bringer]] = {}
        """In order of their placement."""
        self._brought: dict[RequestId, tuple[Bringer, Sequence[BlockKey]]] = {}

    def __len__(self) -> int:
        return len(self._brought)

    def add(self, request_id: RequestId, place: int, keys: Sequence[BlockKey]) -> None:
        """Note that *request_id* brings *keys* to the worker at *place*."""
        if not keys:
            return
        bringer, bringers = Bringer(place, request_id), self._bringers
        self._brought[request_id] = (bringer, keys)
        for key in keys:
            there = bringers.get(key)
            if there is None:
                bringers[key] = [bringer]
            else:
                there.append(bringer)

    def remove(self, request_id: RequestId) -> None:
        """Forget what *request_id* brings: it is there now, or will never be."""
        brought = self._brought.pop(request_id, None)
        if brought is None:
            return
        bringer, bringers = brought[0], self._bringers
        for key in brought[1]:
            there = bringers[key]
            if len(there) == 1:
                del bringers[key]
            else:
                there.remove(bringer)

    def promises(self, keys: Sequence[BlockKey], held: Sequence[Blocks]) -> Mapping[int, list[Promise]]:
        """Return, by place, what a prompt of *keys* could count on beyond its *held* leading blocks.

        A place's promises are in order of their blocks, one for each bringer of a stretch of them.
        """
        promises: dict[int, list[Promise]] = {}
        least, most = min(held), max(held)
        for number, bringers in enumerate(map(self._bringers.get, keys[least:]), least):
            if bringers is None:
                if number >= most:
                    break  # nobody holds more, and no promise reaches past a block that nobody brings
                continue
            for place, request_id in bringers:
                promised = promises.get(place)
                if promised is None:
                    if held[place] == number:
                        promises[place] = [Promise(number + 1, request_id)]
                    continue
                last = promised[-1]
                if last.blocks == number:
                    if last.by == request_id:
                        last.blocks += 1
                    else:
                        promised.append(Promise(number + 1, request_id))
        return promises

    def recompose(self, moved: Mapping[int, int]) -> None:
        """Take new places, *moved* by the old ones."""
        brought, self._brought, self._bringers = self._brought, {}, {}
        for request_id, (bringer, keys) in brought.items():
            self.add(request_id, moved[bringer.place], keys)
