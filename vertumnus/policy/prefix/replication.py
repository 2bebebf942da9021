"""Replicas that are to be made: copied piece by piece where the links are idle (sec. 7.2, 8).

Replication is never in the way of a request: a piece starts when nothing else uses its links, and is short
enough for a pull to wait for. What a scan chose and the next scan finds unfinished is chosen anew.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.orders import Transfer
from vertumnus.domain.units import Blocks, Nanoseconds
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.ranking import Replication
from vertumnus.policy.prefix.transfers import TransferBook

LOOK_AHEAD = 16
"""Replications that are tried each time a link may have become free."""


class Replicator:
    """The replications of the last scan that are not complete, and the copies made for them."""

    def __init__(
        self,
        pool: PoolState,
        index: PrefixIndex,
        ledger: Ledger,
        transfers: TransferBook,
        *,
        at_once: int,
        blocks_per_copy: Blocks,
    ) -> None:
        """Keep at most *at_once* copies under way, each of at most *blocks_per_copy*."""
        self._pool = pool
        self._index = index
        self._ledger = ledger
        self._transfers = transfers
        self._at_once = at_once
        self._blocks_per_copy = blocks_per_copy
        self._waiting: deque[Replication] = deque()
        self._under_way: dict[int, Replication] = {}

    def __len__(self) -> int:
        """Replications that are not complete."""
        return len(self._waiting) + len(self._under_way)

    def replace(self, chosen: Sequence[Replication], now: Nanoseconds) -> list[Transfer]:
        """Take the choice of a new scan instead of what waits; return the copies that start."""
        self._waiting = deque(chosen)
        return self.go_on(now)

    def ended(self, order: Transfer, now: Nanoseconds, copied: Blocks | None) -> list[Transfer]:
        """Note that some transfer has ended; return the copies that start in its place.

        *copied* are the leading blocks that are at its destination now, fewer than were asked for where the
        source had let go of some. A replication whose copy failed (None) is given up: what is wanted still,
        the next scan finds.
        """
        replication = self._under_way.pop(order.transfer_id, None)
        if replication is not None and copied is not None:
            # the rest of its path, if there is one
            self._waiting.appendleft(replication._replace(copied=copied))
        return self.go_on(now)

    def go_on(self, now: Nanoseconds) -> list[Transfer]:
        """Return the copies that can start now."""
        started: list[Transfer] = []
        for _ in range(min(len(self._waiting), LOOK_AHEAD)):
            if len(self._under_way) >= self._at_once:
                break
            replication = self._waiting.popleft()
            piece = self._piece(replication)
            if piece is None:
                continue
            order = self._start(replication, piece, now)
            if order is None:
                self._waiting.append(replication)
            else:
                self._under_way[order.transfer_id] = replication
                started.append(order)
        return started

    def _piece(self, replication: Replication) -> "_Piece | None":
        """Return what is missing next; None when nothing is, or it cannot be had."""
        path, destination = replication.path, self._pool.workers.get(replication.destination)
        if destination is None or not destination.is_serving:
            return None
        held = self._index.match(path).held
        first = max(held[destination.place], replication.copied)
        sources = [
            (held[state.place], state)
            for state in self._pool.workers.values()
            if state.is_serving and held[state.place] > first
        ]
        return _Piece(first, min(len(path), first + self._blocks_per_copy), sources) if sources else None

    def _start(self, replication: Replication, piece: "_Piece", now: Nanoseconds) -> Transfer | None:
        """Return the copy of *piece*; None while a link that it needs is in use."""
        path, destination, transfers = replication.path, replication.destination, self._transfers
        links, loads = transfers.links, self._ledger.outstanding()
        idle = [(held, state) for held, state in piece.sources if links.out_free(state.group) <= now]
        is_coming = transfers.bringing(destination, path[piece.first_block]) is not None
        if is_coming or not idle or links.in_free(destination) > now:
            return None
        # the most blocks; then equal ranks to equal ranks; then the least loaded
        held, source = min(
            idle,
            key=lambda item: (
                -min(item[0], piece.end_block),
                item[1].group.degree != destination.degree,
                loads[item[1].place],
            ),
        )
        copied = path[: min(held, piece.end_block)]
        ranks = self._index.owners(copied[piece.first_block :], destination.mask, source.group.mask)
        return transfers.begin(
            copied, piece.first_block, ranks, destination, replication.reason, "manager", None, now
        )


class _Piece(NamedTuple):
    """The part of a path that is copied next."""

    first_block: Blocks
    end_block: Blocks
    sources: list[tuple[Blocks, WorkerState]]
    """Workers that hold more of the path than the destination, with how many leading blocks."""
