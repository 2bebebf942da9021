"""Closed-loop sessions: a turn that waits for the answer before it, as people and agents do.

Replayed at its own times, or faster, a follow-up may arrive before its predecessor is prefilled, which
flatters whoever places it. Here it comes when its trace says, or a pause after the answer's end, whichever
is later; an answer that failed, or that its client gave up, counts as one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from vertumnus.domain.facts import RequestEnded
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId


class FollowUp(NamedTuple):
    """A request that continues another."""

    request: Request
    pause_ns: Nanoseconds
    """Least time from the end of the answer before it [ns]."""


class FollowUps:
    """The follow-ups of a run, each held until the request before it has ended."""

    def __init__(self, after: Mapping[RequestId, Sequence[FollowUp]]) -> None:
        """*after* names the request that each one waits for."""
        self._after = dict(after)
        self._coming: set[RequestId] = set()
        self.left = sum(map(len, self._after.values()))
        """Follow-ups that have not arrived yet."""

    def released_by(self, fact: RequestEnded) -> Iterable[Request]:
        """Return the requests that waited for the one that has ended, at the times when they arrive."""
        for request, pause_ns in self._after.pop(fact.request_id, ()):
            self._coming.add(request.request_id)
            yield structs.replace(request, arrival_ns=max(request.arrival_ns, fact.at + pause_ns))

    def note_arrival(self, request_id: RequestId) -> bool:
        """Note that a request has arrived; return whether it is a follow-up."""
        if request_id not in self._coming:
            return False
        self._coming.discard(request_id)
        self.left -= 1
        return True
