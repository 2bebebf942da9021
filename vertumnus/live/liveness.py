"""Who owes the coordinator an answer, and by when. A clock goes in; no socket, no process here.

A rank with work owes the answer to that work; one without owes a Pong now and then. A rank that is
frozen, or hangs, or whose host went away, shows as a debt that is overdue.
"""

from typing import Literal, NamedTuple, TypeAlias

from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.live.messages import Peer

Debt: TypeAlias = Literal["ping", "step", "adopt"]

_SPELLED: dict[Debt, str] = {"ping": "a ping", "step": "its step", "adopt": "its new epoch"}

HEARTBEAT_NS: Nanoseconds = SECOND
"""Ranks without work are asked this often whether they are there."""


class Overdue(NamedTuple):
    """A peer that has not answered in time."""

    peer: Peer
    reason: str


class _Owed(NamedTuple):
    debt: Debt
    since: Nanoseconds
    by: Nanoseconds


class Liveness:
    """The debts of all peers."""

    def __init__(self, answer_ns: Nanoseconds) -> None:
        """Peers have *answer_ns* to answer a ping or to adopt an epoch, and twice that for a step.

        Twice, since the peers of a stuck rank report it after one such time: who is silent after two
        is the one that is stuck.
        """
        self._limits: dict[Debt, Nanoseconds] = {
            "ping": answer_ns,
            "step": 2 * answer_ns,
            "adopt": answer_ns,
        }
        self._owed: dict[Peer, _Owed | None] = {}
        self._asked: dict[Peer, Nanoseconds] = {}

    def watch(self, peer: Peer, now: Nanoseconds) -> None:
        """Ask after *peer* from now on."""
        self._owed[peer] = None
        self._asked[peer] = now

    def forget(self, peer: Peer) -> None:
        """Ask no more after a peer that is gone."""
        self._owed.pop(peer, None)
        self._asked.pop(peer, None)

    def owes(self, peer: Peer, debt: Debt, now: Nanoseconds) -> None:
        """Note that *peer*, if it is watched, was given something to answer; it outranks a ping before it."""
        if peer not in self._owed:
            return
        self._owed[peer] = _Owed(debt, now, now + self._limits[debt])
        self._asked[peer] = now

    def answered(self, peer: Peer, debt: Debt) -> None:
        """Note an answer; one to a ping leaves a step or an epoch owed that was sent after it."""
        owed = self._owed.get(peer)
        if owed is not None and owed.debt == debt:
            self._owed[peer] = None

    def to_ping(self, now: Nanoseconds) -> list[Peer]:
        """Return the peers that owe nothing and have not been asked for a heartbeat."""
        return [
            peer
            for peer, owed in self._owed.items()
            if owed is None and now - self._asked[peer] >= HEARTBEAT_NS
        ]

    def overdue(self, now: Nanoseconds) -> list[Overdue]:
        """Return the peers whose answer should have come by *now*.

        Take in what has arrived before asking: a coordinator that was away must not blame the ranks.
        """
        late = [(peer, owed) for peer, owed in self._owed.items() if owed is not None and now > owed.by]
        return [Overdue(peer, _silence(owed, now)) for peer, owed in late]


def _silence(owed: _Owed, now: Nanoseconds) -> str:
    waited_s = (now - owed.since) / SECOND
    limit = "twice backend.step_timeout_s" if owed.debt == "step" else "backend.step_timeout_s"
    return f"no answer to {_SPELLED[owed.debt]} for {waited_s:.1f} s (more than {limit})"
