"""The run's rank processes and their streams: all up, or an error that says who is missing and why.

What arrives is told as events, in order; a rank that is gone is told once, after everything it said.
"""

import secrets
import time
from collections.abc import Iterator
from typing import IO, NamedTuple, TypeAlias

import zmq
from torch._C._distributed_c10d import TCPStore

from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.domain.units import Epoch, to_ns
from vertumnus.live.control import Received, Switchboard
from vertumnus.live.groups import serve_store
from vertumnus.live.kv_store import shared_directory
from vertumnus.live.launch import BAD_INPUT, RankProcess, StartError
from vertumnus.live.liveness import Debt, Liveness
from vertumnus.live.messages import (
    PROTOCOL_VERSION,
    Adopt,
    Adopted,
    FromRank,
    Peer,
    Ping,
    Pong,
    Ready,
    Register,
    Shutdown,
    Step,
    StepDone,
    StepFailed,
    ToRank,
    Welcome,
)
from vertumnus.live.plan import LivePlan
from vertumnus.live.shared_map import nameless_files

INCARNATION = 0
"""Of every rank: this version does not start lost ranks again."""

FIRST_EPOCH: Epoch = 0
"""Of a run."""

CALIBRATION_EPOCH: Epoch = -(1 << 20)
"""Where ranks begin that form workers of every degree to be timed, and `FIRST_EPOCH` after that."""

_OWED: dict[type[ToRank], Debt] = {Step: "step", Adopt: "adopt"}
_PAID: dict[type[FromRank], Debt] = {StepDone: "step", StepFailed: "step", Adopted: "adopt"}

_LOOK_S = 0.2
"""How long the end of a process may go unnoticed where the system cannot wait on one [s]."""

_LEAVE_S = 2.0
"""How long ranks have to leave on their own at the end [s]."""

_TAIL_LINES = 15


class Lost(NamedTuple):
    """A rank's process is gone, or was killed because it did not answer."""

    peer: Peer
    reason: str
    exit_status: int
    """Negative: the signal that ended it."""
    printed: str
    """Its last lines."""


Event: TypeAlias = Received | Lost


class RankPool:
    """Every rank of a run, prefill and decode."""

    def __init__(self, plan: LivePlan, first_epoch: Epoch = FIRST_EPOCH) -> None:
        """Prepare; nothing runs before `start`. Ranks begin as the plan's workers in *first_epoch*."""
        self._plan = plan
        self._first_epoch = first_epoch
        self._run = secrets.token_hex(16)
        self._switchboard: Switchboard | None = None
        self._store: TCPStore | None = None
        self._maps: list[IO[bytes]] = []
        self._processes: dict[Peer, RankProcess] = {}
        self._poller = zmq.Poller()
        self._liveness = Liveness(to_ns(plan.live.step_timeout_s))

    @property
    def pids(self) -> list[int]:
        """Process ids of the ranks that are up, prefill first."""
        return [process.pid for process in self._processes.values()]

    def start(self) -> None:
        """Start every rank and wait until all are ready.

        Raises StartError when one ends or the time is up, ConfigError when a KV map does not fit;
        call `close` then as after success.
        """
        self._maps = self._make_maps()
        self._switchboard = Switchboard(self._run)
        self._poller.register(self._switchboard.socket, zmq.POLLIN)
        for peer in self._planned_peers():
            self._launch(peer, self._switchboard)
        self._store = serve_store()
        self._await_ready(time.monotonic() + self._plan.live.start_timeout_s)
        for peer in self._processes:
            self._liveness.watch(peer, time.monotonic_ns())

    def wake_on(self, fd: int) -> None:
        """End `wait` when *fd* becomes readable, too."""
        self._poller.register(fd, zmq.POLLIN)

    def send(self, peer: Peer, body: ToRank) -> None:
        """Put *body* on the stream of *peer*; nothing happens when it is gone."""
        assert self._switchboard is not None, "start comes first"
        self._switchboard.send(peer, body)
        debt = _OWED.get(type(body))
        if debt is not None:
            self._liveness.owes(peer, debt, time.monotonic_ns())

    def is_up(self, peer: Peer) -> bool:
        """Return whether *peer*'s process has not been reported lost."""
        return peer in self._processes

    def wait(self, seconds: float) -> None:
        """Wait until something may have happened, *seconds* at most, whole milliseconds of them."""
        self._poller.poll(int(1_000 * seconds))

    def events(self) -> list[Event]:
        """Return what has happened since the last call, without waiting."""
        assert self._switchboard is not None, "start comes first"
        events: list[Event] = []
        for received in self._switchboard.receive():
            if not self._note(received):
                events.append(received)
        events += list(self._losses())
        return events

    def close(self) -> None:
        """Ask all ranks to leave, kill those that do not, free everything; safe to call twice."""
        self._ask_to_leave()
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        for file in self._maps:
            file.close()
        self._maps.clear()
        if self._switchboard is not None:
            self._switchboard.close()
            self._switchboard = None
        self._store = None

    # ---- start ----------------------------------------------------------------------------------

    def _planned_peers(self) -> list[Peer]:
        prefill = [Peer("prefill", rank) for rank in range(self._plan.lattice.gpus)]
        return prefill + [Peer("decode", rank) for rank in range(self._plan.decode_ranks)]

    def _streams_of(self, peer: Peer) -> list[Peer]:
        """Return the streams of one process: its main loop's, and its transfer thread's if it has one."""
        # a decode rank copies out of shared memory itself, when it admits a prompt
        has_transfers = peer.pool == "prefill" or self._plan.transport == "pairwise"
        return [peer, peer._replace(transfers=True)] if has_transfers else [peer]

    def _make_maps(self) -> list[IO[bytes]]:
        if self._plan.transport != "shared":
            return []
        ranks, size_bytes = self._plan.lattice.gpus, self._plan.store_bytes
        directory = shared_directory(self._plan.live.shared_dir, ranks * size_bytes)
        return nameless_files(ranks, directory, size_bytes)

    @property
    def _kv_fds(self) -> tuple[int, ...]:
        """The open maps, by prefill rank: every rank reads all of them, and its owner writes one."""
        return tuple(file.fileno() for file in self._maps)

    def _launch(self, peer: Peer, switchboard: Switchboard) -> None:
        for stream in self._streams_of(peer):
            switchboard.expect(stream, INCARNATION)
        process = RankProcess(peer, INCARNATION, switchboard.endpoint, self._run, self._kv_fds)
        self._processes[peer] = process
        if process.death_fd is not None:
            self._poller.register(process.death_fd, zmq.POLLIN)

    def _await_ready(self, deadline_s: float) -> None:
        missing = {stream for peer in self._processes for stream in self._streams_of(peer)}
        registered: set[Peer] = set()
        while missing:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise StartError(self._who_is_missing(missing, registered))
            self.wait(min(left_s, _LOOK_S))
            for event in self.events():
                if isinstance(event, Lost):
                    raise _start_failure(event)
                if isinstance(event.body, Register):
                    registered.add(event.peer)
                if self._greet(event):
                    missing.discard(event.peer)

    def _greet(self, event: Received) -> bool:
        """Answer a message of the start; return whether its stream is now ready."""
        peer, body = event
        if isinstance(body, Register):
            if body.protocol != PROTOCOL_VERSION:
                raise StartError(f"{peer} speaks protocol {body.protocol}, this is {PROTOCOL_VERSION}")
            if not peer.transfers:
                self.send(peer, self._welcome(peer))
            return peer.transfers
        return isinstance(body, Ready)

    def _welcome(self, peer: Peer) -> Welcome:
        assert self._store is not None, "the store is up before anyone is greeted"
        worker = self._plan.worker_of(peer.rank) if peer.pool == "prefill" else None
        return Welcome(self._plan, worker, self._first_epoch, self._store.port, self._kv_fds)

    def _who_is_missing(self, missing: set[Peer], registered: set[Peer]) -> str:
        lines = [
            f"not all ranks were ready after {self._plan.live.start_timeout_s:g} s (backend.start_timeout_s)"
        ]
        for peer in sorted(missing):
            if peer.transfers and peer.process in missing:
                continue  # one line a process
            stage = "registered, but not ready" if peer in registered else "has not registered"
            printed = self._processes[peer.process].tail(_TAIL_LINES)
            lines.append(f"{peer}: {stage}" + (f"; it printed:\n{printed}" if printed else ""))
        return "\n".join(lines)

    # ---- run ------------------------------------------------------------------------------------

    def _note(self, received: Received) -> bool:
        """Keep the debts; return whether the message was about nothing else."""
        if isinstance(received.body, Pong):
            self._liveness.answered(received.peer, "ping")
            return True
        debt = _PAID.get(type(received.body))
        if debt is not None:
            self._liveness.answered(received.peer, debt)
        return False

    def _losses(self) -> Iterator[Lost]:
        now = time.monotonic_ns()
        for overdue in self._liveness.overdue(now):
            yield self._lose(overdue.peer, overdue.reason)
        for peer, process in list(self._processes.items()):
            if process.has_ended():
                yield self._lose(peer, process.how_it_ended())
        for peer in self._liveness.to_ping(now):
            self._liveness.owes(peer, "ping", now)
            self.send(peer, Ping())

    def _lose(self, peer: Peer, reason: str) -> Lost:
        process = self._processes.pop(peer)
        process.kill()
        lost = Lost(peer, reason, process.exit_status, process.tail(_TAIL_LINES))
        self._liveness.forget(peer)
        if self._switchboard is not None:
            for stream in self._streams_of(peer):
                self._switchboard.forget(stream)
        if process.death_fd is not None:
            self._poller.unregister(process.death_fd)
        process.close()
        return lost

    def _ask_to_leave(self) -> None:
        if self._switchboard is None:
            return
        for peer in self._processes:
            for stream in self._streams_of(peer):
                self._switchboard.send(stream, Shutdown())
        deadline_s = time.monotonic() + _LEAVE_S
        for process in self._processes.values():
            process.wait(max(0.0, deadline_s - time.monotonic()))


def _start_failure(lost: Lost) -> VertumnusError:
    """Return what to raise when a rank ended during the start: the user's to mend if it says so."""
    if lost.exit_status == BAD_INPUT:
        return ConfigError(lost.printed)
    printed = f"; it printed:\n{lost.printed}" if lost.printed else ""
    return StartError(f"{lost.peer} ended during the start ({lost.reason}){printed}")
