"""The run's side of the action socket: a thread that posts wishes and hands the answers out.

Wishes go through the engine's thread-safe `post` and are answered by the control plane, one after the
other, so that two operators at once get a consistent result. Nothing here decides what is legal, but who may
act at all, and the speed of a paced run, which is the engine's.
"""

import selectors
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import isfinite
from pathlib import Path
from threading import Thread
from typing import Protocol, get_args

from vertumnus.actions.address import listener
from vertumnus.actions.connection import Connection, Refusal, checked_hello
from vertumnus.actions.protocol import Act, Answered, FromConsole, Hello, Welcome, beyond_the_log
from vertumnus.domain.codec import Record
from vertumnus.domain.facts import Action, OperatorActed
from vertumnus.domain.orders import Answer

MOST_CONSOLES = 32
"""At once; more are turned away."""
FASTEST = 1e6
"""Virtual seconds a second at most."""


class Pace(Protocol):
    """What the server needs of a paced run."""

    @property
    def speed(self) -> float:
        """Virtual seconds a second; 0 while the run is held."""

    def set_speed(self, speed: float) -> None:
        """Go on at *speed*; called from the server's thread."""


class ActionServer:
    """Listens until `close`; safe to use from the run's thread while it does."""

    def __init__(
        self,
        path: Path,
        run_id: str,
        post: Callable[[OperatorActed], None],
        pace: Pace | None,
        first_id: int = 0,
    ) -> None:
        """Listen at *path*; raises OSError. Actions are numbered from *first_id* on."""
        self._path = path
        self._run_id = run_id
        self._post = post
        self._pace = pace
        self._next_id = first_id
        self._awaited: dict[int, tuple[Connection, int]] = {}
        self._answers: deque[Answer] = deque()
        self._is_closing = False
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._listener = listener(path, MOST_CONSOLES)
        self._listener.setblocking(False)
        self._connections: set[Connection] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = Thread(target=self._run, name="actions", daemon=True)
        self._thread.start()

    @property
    def is_awaiting(self) -> bool:
        """Whether a wish was posted whose answer `told` has not seen."""
        return bool(self._awaited)

    def told(self, records: Iterable[Record]) -> None:
        """Look for answers in what the run has just recorded."""
        if self._awaited:
            answers = [body for _, body in records if type(body) is Answer]
            if answers:
                self._answers.extend(answers)
                self._wake()

    def close(self) -> None:
        """Say goodbye to every console and give the socket back; safe to call twice."""
        self._is_closing = True
        self._wake()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    # ---- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closing:
            for key, _ in self._selector.select():
                self._ready(key)
            self._hand_out()
        self._hand_out()
        for number, (connection, act) in self._awaited.items():
            with suppress(Refusal):
                connection.send(_answered(act, Answer(number, False, "the run ended before it was taken")))
        for connection in list(self._connections):
            self._drop(connection, "the run has ended")
        for held in (self._selector, self._listener, self._ear, self._bell):
            held.close()

    def _ready(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._listener:
            self._accept()
        elif key.fileobj is self._ear:
            with suppress(BlockingIOError):
                self._ear.recv(4_096)
        else:
            self._read(key.data)

    def _accept(self) -> None:
        with suppress(OSError):
            connection = Connection(self._listener.accept()[0])
            if len(self._connections) >= MOST_CONSOLES:
                connection.close(f"{MOST_CONSOLES} consoles are attached already")
                return
            self._connections.add(connection)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _read(self, connection: Connection) -> None:
        try:
            for message in connection.received():
                self._take(connection, message)
        except Refusal as refusal:
            self._drop(connection, str(refusal))

    def _take(self, connection: Connection, message: FromConsole) -> None:
        if isinstance(message, Hello):
            connection.hello = checked_hello(message)
            connection.send(self._welcome(message))
        elif connection.hello is None:
            raise Refusal("say hello first")
        else:
            self._act(connection, connection.hello, message)

    def _welcome(self, hello: Hello) -> Welcome:
        speed = None if self._pace is None else self._pace.speed
        return Welcome(run_id=self._run_id, actions=() if hello.reads_only else self._actions, speed=speed)

    @property
    def _actions(self) -> tuple[Action, ...]:
        every: tuple[Action, ...] = get_args(Action)
        return every if self._pace is not None else tuple(action for action in every if action != "speed")

    def _act(self, connection: Connection, hello: Hello, act: Act) -> None:
        reason = (
            "this console is read-only" if hello.reads_only else beyond_the_log(act) or self._set_speed(act)
        )
        if reason:
            connection.refuse(act, reason)
            return
        action_id, self._next_id = self._next_id, self._next_id + 1
        self._awaited[action_id] = connection, act.number
        self._post(OperatorActed(0, action_id, hello.who, act.action, act.workers, act.setting, act.value))

    def _set_speed(self, act: Act) -> str:
        """Change the pace if *act* asks for it; return why not, or nothing."""
        if act.action != "speed":
            return ""
        if self._pace is None:
            return "speed: this run is executed and keeps real time; a paced simulated run has a speed"
        if not (isinstance(act.value, int | float) and isfinite(act.value) and 0.0 <= act.value <= FASTEST):
            return f"speed: must be from 0 (hold) to {FASTEST:g} virtual seconds a second, got {act.value}"
        self._pace.set_speed(float(act.value))
        return ""

    def _hand_out(self) -> None:
        while self._answers:
            answer = self._answers.popleft()
            connection, number = self._awaited.pop(answer.action_id, (None, 0))
            if connection is not None and connection in self._connections:
                try:
                    connection.send(_answered(number, answer))
                except Refusal:
                    self._drop(connection, "")

    def _drop(self, connection: Connection, reason: str) -> None:
        self._connections.discard(connection)
        self._selector.unregister(connection.socket)
        connection.close(reason)

    def _wake(self) -> None:
        with suppress(OSError):
            self._bell.send(b"!")


def _answered(number: int, answer: Answer) -> Answered:
    return Answered(number=number, action_id=answer.action_id, accepted=answer.accepted, reason=answer.reason)
