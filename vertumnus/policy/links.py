"""When copies between workers will be over: one at a time out of each worker, one into it (sec. 7.2, D4).

A copy occupies the way out of every worker that it reads from and the way in of its destination, from
the moment at which all of them are free. Predictions are corrected by the copies' ends: those that wait
behind one that ended early or late move with it.
"""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.units import Blocks, Nanoseconds


class _Reservation(Struct, gc=False):
    sources: tuple[CpGroup, ...]
    destination: CpGroup
    asked_ns: Nanoseconds
    took_ns: Nanoseconds
    end_ns: Nanoseconds


class Links:
    """Reservations of the transfers that are under way, in the order in which they were made."""

    def __init__(self, config: LinkConfig, block_bytes: int) -> None:
        self._config = config
        self.block_bytes = block_bytes
        self._copy_ns: dict[Blocks, Nanoseconds] = {}
        """Every placement asks."""
        self._open: dict[int, _Reservation] = {}
        self._out: dict[CpGroup, Nanoseconds] = {}
        self._in: dict[CpGroup, Nanoseconds] = {}
        """When the last reserved copy out of, or into, each worker ends."""
        self._freed_out: dict[CpGroup, Nanoseconds] = {}
        self._freed_in: dict[CpGroup, Nanoseconds] = {}
        """When the last copy that is over ended."""

    def __len__(self) -> int:
        return len(self._open)

    def copy_ns(self, blocks: Blocks) -> Nanoseconds:
        """Return the time of a copy of *blocks* alone on its links [ns]."""
        took = self._copy_ns.get(blocks)
        if took is None:
            took = self._copy_ns[blocks] = self._config.transfer(blocks * self.block_bytes)
        return took

    def out_free(self, worker: CpGroup) -> Nanoseconds:
        """Return when a copy out of *worker* may start; an instant that has passed when it is free."""
        return self._out.get(worker, 0)

    def first_free(self, workers: Sequence[CpGroup]) -> CpGroup:
        """Return that of *workers* whose way out rests since longest, or will first; ties to the first."""
        out_free = self._out.get
        free = [out_free(worker, 0) for worker in workers]
        return workers[free.index(min(free))]

    def in_free(self, worker: CpGroup) -> Nanoseconds:
        """Return when a copy into *worker* may start; an instant that has passed when it is free."""
        return self._in.get(worker, 0)

    def reserve(
        self,
        transfer_id: int,
        sources: Sequence[CpGroup],
        destination: CpGroup,
        blocks: Blocks,
        now: Nanoseconds,
    ) -> Nanoseconds:
        """Reserve the links of a copy that is ordered now; return when it will be over."""
        made = _Reservation(tuple(sources), destination, now, self.copy_ns(blocks), 0)
        self._open[transfer_id] = made
        self._put_behind(made, now)
        return made.end_ns

    def end_of(self, transfer_id: int) -> Nanoseconds:
        """Return when a copy that is under way will be over, as far as is known."""
        return self._open[transfer_id].end_ns

    def release(self, transfer_id: int, now: Nanoseconds) -> None:
        """Note that a copy is over, in any way, and move up those that waited for it."""
        ended = self._open.pop(transfer_id)
        self._freed_in[ended.destination] = now
        self._freed_out.update(dict.fromkeys(ended.sources, now))
        self._in, self._out = dict(self._freed_in), dict(self._freed_out)
        for waiting in self._open.values():
            self._put_behind(waiting, now)

    def _put_behind(self, copy: _Reservation, now: Nanoseconds) -> None:
        """Let *copy* follow what has been put on its links so far; it is not over before *now*."""
        start = max(copy.asked_ns, self._in.get(copy.destination, 0))
        for source in copy.sources:
            start = max(start, self._out.get(source, 0))
        copy.end_ns = max(start + copy.took_ns, now)
        self._in[copy.destination] = copy.end_ns
        self._out.update(dict.fromkeys(copy.sources, copy.end_ns))
