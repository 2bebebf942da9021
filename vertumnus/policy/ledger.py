"""Reserved predicted work of each worker: q_w of sec. 5.2-5.3.

Integer nanoseconds, so a balance that is settled is exactly 0. A request's work is reserved when it
is placed and released once: when its step ends or it is returned or ended before that.
"""

from collections.abc import Sequence

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.domain.units import Nanoseconds, RequestId


class Ledger:
    """Who is reserved where, and for how long. Workers are told apart by their place in the pool's order."""

    def __init__(self, workers: Sequence[CpGroup]) -> None:
        self._place_of = {worker: place for place, worker in enumerate(workers)}
        self._outstanding = [0] * len(workers)
        self._running: list[tuple[Nanoseconds, Nanoseconds]] = [(0, 0)] * len(workers)
        """Predicted time of the step that runs, and when it started."""
        self._reserved: dict[RequestId, tuple[int, Nanoseconds]] = {}

    def recompose(self, workers: Sequence[CpGroup]) -> None:
        """Take a new order of *workers*; those that are no longer among them must be settled.

        Raises InvariantError when one of them still has work reserved.
        """
        for worker, place in self._place_of.items():
            if worker not in workers and self._outstanding[place] != 0:
                raise InvariantError(f"worker {worker} leaves with {self._outstanding[place]} ns reserved")
        old = self._place_of
        outstanding = [self._outstanding[old[w]] if w in old else 0 for w in workers]
        running = [self._running[old[w]] if w in old else (0, 0) for w in workers]
        moved = {place: workers.index(worker) for worker, place in old.items() if worker in workers}
        self._reserved = {r: (moved[place], ns) for r, (place, ns) in self._reserved.items()}
        self._outstanding[:], self._running[:] = outstanding, running
        self._place_of = {worker: place for place, worker in enumerate(workers)}

    @property
    def total_ns(self) -> Nanoseconds:
        """Work reserved at all workers; 0 once every request has ended [ns]."""
        return sum(self._outstanding)

    def reserve(self, request_id: RequestId, worker: CpGroup, service_ns: Nanoseconds) -> None:
        """Reserve a placed request's predicted work at once (sec. 5.2).

        Raises ProtocolError if it is reserved already.
        """
        if request_id in self._reserved:
            raise ProtocolError(f"request {request_id} is reserved already")
        place = self._place_of[worker]
        self._reserved[request_id] = (place, service_ns)
        self._outstanding[place] += service_ns

    def reprice(self, request_id: RequestId, service_ns: Nanoseconds) -> None:
        """Replace a reservation by what the step that now starts will take."""
        place, before = self._reserved[request_id]
        self._reserved[request_id] = (place, service_ns)
        self._outstanding[place] += service_ns - before

    def release(self, request_id: RequestId) -> None:
        """Release a reservation; one that is released already stays so."""
        entry = self._reserved.pop(request_id, None)
        if entry is not None:
            self._outstanding[entry[0]] -= entry[1]

    def start(self, worker: CpGroup, step_ns: Nanoseconds, now: Nanoseconds) -> None:
        """Note that *worker* runs a step of *step_ns* since *now*."""
        self._running[self._place_of[worker]] = (step_ns, now)

    def stop(self, worker: CpGroup) -> None:
        """Note that *worker* runs nothing."""
        self._running[self._place_of[worker]] = (0, 0)

    def running(self, worker: CpGroup) -> Nanoseconds:
        """Return the predicted time of the step that *worker* runs; 0 when it runs none [ns]."""
        return self._running[self._place_of[worker]][0]

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

    def check(self) -> None:
        """Raise InvariantError unless the totals are the sums of the reservations."""
        totals = [0] * len(self._outstanding)
        for place, service_ns in self._reserved.values():
            totals[place] += service_ns
        if totals != self._outstanding:
            raise InvariantError(f"reserved {self._outstanding} ns by worker, the entries say {totals}")
