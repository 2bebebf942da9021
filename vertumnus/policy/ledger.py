"""Work that is placed and not done, by worker: q_w of sec. 5.2-5.3, and each queue in its order (D3).

Integer nanoseconds, so a balance that is settled is exactly 0. A request's work is reserved when it
is placed and released once: when its step ends or it is returned or ended before that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.domain.units import BlockKey, Nanoseconds, RequestId, Tokens
from vertumnus.domain.wording import counted
from vertumnus.policy.prefix.pending import PendingBlocks
from vertumnus.policy.queue_mirror import QueueMirror


class Load(NamedTuple):
    """What is placed at a worker and not done."""

    waiting: int
    """Requests in its queue."""
    running: int
    """Requests in its step."""
    uncached_tokens: Tokens
    """Of all of them, as routing saw it."""


class Reservation(Struct, gc=False):
    """One placed request's work."""

    place: int
    service_ns: Nanoseconds
    priority: int
    uncached_tokens: Tokens
    is_queued: bool = True


class Ledger:
    """Who is reserved where, and for how long. Workers are told apart by their place in the pool's order."""

    def __init__(self, workers: Sequence[CpGroup]) -> None:
        self._place_of = {worker: place for place, worker in enumerate(workers)}
        self._outstanding = [0] * len(workers)
        self._requests = [0] * len(workers)
        self._uncached = [0] * len(workers)
        self._running: list[tuple[Nanoseconds, Nanoseconds]] = [(0, 0)] * len(workers)
        """Predicted time of the step that runs, and when it started."""
        self._ends = [0] * len(workers)
        """When the step that runs should end; 0 where none runs."""
        self._reserved: dict[RequestId, Reservation] = {}
        self.queues = [QueueMirror() for _ in workers]
        """By place."""
        self.pending = PendingBlocks()

    def recompose(self, workers: Sequence[CpGroup]) -> None:
        """Take a new order of *workers*; those that are no longer among them must be settled.

        Raises InvariantError when one of them still has work reserved.
        """
        for worker, place in self._place_of.items():
            if worker not in workers and self._outstanding[place] != 0:
                raise InvariantError(f"worker {worker} leaves with {self._outstanding[place]} ns reserved")
        old = self._place_of
        for each in (self._outstanding, self._requests, self._uncached, self._ends):
            each[:] = [each[old[w]] if w in old else 0 for w in workers]
        self._running = [self._running[old[w]] if w in old else (0, 0) for w in workers]
        self.queues = [self.queues[old[w]] if w in old else QueueMirror() for w in workers]
        moved = {place: workers.index(worker) for worker, place in old.items() if worker in workers}
        for reservation in self._reserved.values():
            reservation.place = moved[reservation.place]
        self.pending.recompose(moved)
        self._place_of = {worker: place for place, worker in enumerate(workers)}

    @property
    def total_ns(self) -> Nanoseconds:
        """Work reserved at all workers; 0 once every request has ended [ns]."""
        return sum(self._outstanding)

    def reserve(
        self,
        request_id: RequestId,
        worker: CpGroup,
        service_ns: Nanoseconds,
        priority: int = 0,
        uncached_tokens: Tokens = 0,
        brings: Sequence[BlockKey] = (),
    ) -> None:
        """Reserve a placed request's predicted work at once (sec. 5.2), in its worker's queue at *priority*.

        *brings* are the blocks that it will leave there. Raises ProtocolError if it is reserved already.
        """
        if request_id in self._reserved:
            raise ProtocolError(f"request {request_id} is reserved already")
        place = self._place_of[worker]
        self._reserved[request_id] = Reservation(place, service_ns, priority, uncached_tokens)
        self._outstanding[place] += service_ns
        self._requests[place] += 1
        self._uncached[place] += uncached_tokens
        self.queues[place].insert(request_id, priority, service_ns)
        self.pending.add(request_id, place, brings)

    def begin(self, request_id: RequestId, service_ns: Nanoseconds) -> None:
        """Take a request out of its queue, and reserve what the step that now starts will take for it."""
        entry = self._reserved[request_id]
        self._outstanding[entry.place] += service_ns - entry.service_ns
        self._dequeue(request_id, entry)
        entry.service_ns = service_ns

    def release(self, request_id: RequestId) -> None:
        """Release a reservation; one that is released already stays so."""
        entry = self._reserved.pop(request_id, None)
        if entry is not None:
            self._outstanding[entry.place] -= entry.service_ns
            self._requests[entry.place] -= 1
            self._uncached[entry.place] -= entry.uncached_tokens
            self._dequeue(request_id, entry)
            self.pending.remove(request_id)

    def queued_priority(self, request_id: RequestId) -> int | None:
        """Return the priority of a request that waits in a queue; None for one that does not."""
        entry = self._reserved.get(request_id)
        return entry.priority if entry is not None and entry.is_queued else None

    def start(self, worker: CpGroup, step_ns: Nanoseconds, now: Nanoseconds) -> None:
        """Note that *worker* runs a step of *step_ns* since *now*."""
        place = self._place_of[worker]
        self._running[place], self._ends[place] = (step_ns, now), now + step_ns

    def stop(self, worker: CpGroup) -> None:
        """Note that *worker* runs nothing."""
        place = self._place_of[worker]
        self._running[place], self._ends[place] = (0, 0), 0

    def running(self, worker: CpGroup) -> Nanoseconds:
        """Return the predicted time of the step that *worker* runs; 0 when it runs none [ns]."""
        return self._running[self._place_of[worker]][0]

    def queued(self, worker: CpGroup) -> list[RequestId]:
        """Return the requests in the queue of *worker*, in the order in which they would run."""
        return list(self.queues[self._place_of[worker]].ids)

    def before(self, worker: CpGroup, priority: int) -> list[RequestId]:
        """Return who would be done at *worker* before a new job of *priority*: its step, then its queue."""
        place = self._place_of[worker]
        ids = self.queues[place].ids
        running = [r for r, entry in self._reserved.items() if entry.place == place and not entry.is_queued]
        return [*running, *ids[: len(ids) - self.queues[place].place(priority)[1]]]

    def load(self, worker: CpGroup) -> Load:
        """Return what is placed at *worker* and not done."""
        place = self._place_of[worker]
        waiting = len(self.queues[place].ids)
        return Load(waiting, self._requests[place] - waiting, self._uncached[place])

    def outstanding(self) -> Sequence[Nanoseconds]:
        """Return q of each worker as the formula of sec. 5.3: full times of unfinished requests [ns].

        A live view, by place; not to be kept.
        """
        return self._outstanding

    def remaining(self, now: Nanoseconds) -> Sequence[Nanoseconds]:
        """Return q of each worker less what its running step has used (sec. 5.3's prose) [ns]."""
        return [
            outstanding - min(step_ns, now - started_ns)
            for outstanding, (step_ns, started_ns) in zip(self._outstanding, self._running, strict=True)
        ]

    def until_idle(self, now: Nanoseconds) -> Sequence[Nanoseconds]:
        """Return what remains of the step that each worker runs; 0 where none runs, or is overdue [ns]."""
        return [end - now if end > now else 0 for end in self._ends]

    def check(self) -> None:
        """Raise InvariantError unless totals and queues are those of the reservations."""
        entries: list[dict[RequestId, Reservation]] = [{} for _ in self.queues]
        for request_id, entry in self._reserved.items():
            entries[entry.place][request_id] = entry
        totals = [sum(entry.service_ns for entry in here.values()) for here in entries]
        if totals != self._outstanding:
            raise InvariantError(f"reserved {self._outstanding} ns by worker, the entries say {totals}")
        tokens = [sum(entry.uncached_tokens for entry in here.values()) for here in entries]
        if tokens != self._uncached or list(map(len, entries)) != self._requests:
            raise InvariantError(
                f"counted {self._requests} and {self._uncached} (requests, tokens), the entries differ"
            )
        queued = [{number for number, entry in here.items() if entry.is_queued} for here in entries]
        if any(set(mirror.ids) != ids for mirror, ids in zip(self.queues, queued, strict=True)):
            raise InvariantError(f"queued {[mirror.ids for mirror in self.queues]}, the entries say {queued}")
        if not self._reserved and len(self.pending):
            bring = counted(len(self.pending), "request brings blocks", "requests bring blocks")
            raise InvariantError(f"nothing is reserved and {bring}")

    def _dequeue(self, request_id: RequestId, entry: Reservation) -> None:
        if entry.is_queued:
            entry.is_queued = False
            self.queues[entry.place].remove(request_id, entry.priority)
