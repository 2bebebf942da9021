"""Reserved predicted work of each worker: q_w of sec. 5.2-5.3.

Integer nanoseconds, so a balance that is settled is exactly 0. A request's work is reserved when it
is placed and released once: when its step ends or it is returned or ended before that.
"""

from collections.abc import Iterable

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.domain.units import Nanoseconds, RequestId


class Account(Struct, gc=False):
    """Running totals of one worker."""

    outstanding_ns: Nanoseconds = 0
    running_ns: Nanoseconds = 0
    started_ns: Nanoseconds = 0


class Ledger:
    """Who is reserved where, and for how long."""

    def __init__(self, workers: Iterable[CpGroup]) -> None:
        self._accounts = {worker: Account() for worker in workers}
        self._reserved: dict[RequestId, tuple[CpGroup, Nanoseconds]] = {}

    @property
    def total_ns(self) -> Nanoseconds:
        """Work reserved at all workers; 0 once every request has ended [ns]."""
        return sum(account.outstanding_ns for account in self._accounts.values())

    def reserve(self, request_id: RequestId, worker: CpGroup, service_ns: Nanoseconds) -> None:
        """Reserve a placed request's predicted work at once (sec. 5.2).

        Raises ProtocolError if it is reserved already.
        """
        if request_id in self._reserved:
            raise ProtocolError(f"request {request_id} is reserved already")
        self._reserved[request_id] = (worker, service_ns)
        self._accounts[worker].outstanding_ns += service_ns

    def reprice(self, request_id: RequestId, service_ns: Nanoseconds) -> None:
        """Replace a reservation by what the step that now starts will take."""
        worker, before = self._reserved[request_id]
        self._reserved[request_id] = (worker, service_ns)
        self._accounts[worker].outstanding_ns += service_ns - before

    def release(self, request_id: RequestId) -> None:
        """Release a reservation; one that is released already stays so."""
        entry = self._reserved.pop(request_id, None)
        if entry is not None:
            self._accounts[entry[0]].outstanding_ns -= entry[1]

    def start(self, worker: CpGroup, step_ns: Nanoseconds, now: Nanoseconds) -> None:
        """Note that *worker* runs a step of *step_ns* since *now*."""
        account = self._accounts[worker]
        account.running_ns, account.started_ns = step_ns, now

    def stop(self, worker: CpGroup) -> None:
        """Note that *worker* runs nothing."""
        self._accounts[worker].running_ns = 0

    def outstanding(self, worker: CpGroup) -> Nanoseconds:
        """Return the full predicted times of the unfinished requests: q_w as the formula of sec. 5.3 [ns]."""
        return self._accounts[worker].outstanding_ns

    def remaining(self, worker: CpGroup, now: Nanoseconds) -> Nanoseconds:
        """Return q_w less what the running step has used, as the prose of sec. 5.3 [ns]."""
        account = self._accounts[worker]
        return account.outstanding_ns - min(account.running_ns, now - account.started_ns)

    def check(self) -> None:
        """Raise InvariantError unless the totals are the sums of the reservations."""
        totals = dict.fromkeys(self._accounts, 0)
        for worker, service_ns in self._reserved.values():
            totals[worker] += service_ns
        for worker, account in self._accounts.items():
            if totals[worker] != account.outstanding_ns:
                raise InvariantError(
                    f"worker {worker}: {account.outstanding_ns} ns reserved, entries say {totals[worker]}"
                )
