"""Blocks that placed requests will leave at their workers, beyond what those hold (D4).

A request's whole blocks are pending at its worker from its placement to the end of its step. Who asks
for them there later reuses them, provided that it runs after one of those who bring them. Workers are
told apart by their place in the pool's order.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from vertumnus.domain.units import BlockKey, Blocks, RequestId


class Bringer(Struct, gc=False):
    """A placed request, where it is placed and what it brings."""

    request_id: RequestId
    place: int
    keys: Sequence[BlockKey]
    is_gone: bool = False


class Promise(Struct, gc=False):
    """Leading blocks that a worker will hold once a request has run there."""

    blocks: Blocks
    by: RequestId
    """The first placed of those who bring the last of them."""


class PendingBlocks:
    """Who brings which block where."""

    def __init__(self) -> None:
        self._bringers: dict[BlockKey, dict[int, list[Bringer]]] = {}
        """By place, in order of their placement. The first is not gone: each arrival looks at it.

        One that goes from further behind stays until those before it have gone: most often the first is the
        first to go, and many may bring one block.
        """
        self._brought: dict[RequestId, Bringer] = {}

    def __len__(self) -> int:
        return len(self._brought)

    def add(self, request_id: RequestId, place: int, keys: Sequence[BlockKey]) -> None:
        """Note that *request_id* brings *keys* to the worker at *place*."""
        if not keys:
            return
        bringers = self._bringers
        self._brought[request_id] = bringer = Bringer(request_id, place, keys)
        for key in keys:
            places = bringers.get(key)
            if places is None:
                bringers[key] = {place: [bringer]}
                continue
            there = places.get(place)
            if there is None:
                places[place] = [bringer]
            else:
                there.append(bringer)

    def remove(self, request_id: RequestId) -> None:
        """Forget what *request_id* brings: it is there now, or will never be."""
        bringer = self._brought.pop(request_id, None)
        if bringer is None:
            return
        bringer.is_gone = True
        bringers, place = self._bringers, bringer.place
        for key in bringer.keys:
            places = bringers[key]
            there = places[place]
            if there[0] is not bringer:
                continue
            gone, count = 1, len(there)
            while gone < count and there[gone].is_gone:
                gone += 1
            if gone < count:
                del there[:gone]
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
                        promises[place] = [Promise(number + 1, there[0].request_id)]
                    continue
                last = promised[-1]
                if last.blocks == number:
                    first = there[0].request_id
                    if last.by == first:
                        last.blocks += 1
                    else:
                        promised.append(Promise(number + 1, first))
        return promises

    def recompose(self, moved: Mapping[int, int]) -> None:
        """Take new places, *moved* by the old ones."""
        brought, self._brought, self._bringers = self._brought, {}, {}
        for bringer in brought.values():
            self.add(bringer.request_id, moved[bringer.place], bringer.keys)
