"""A console's side of the action socket; nothing here waits for the run, but `connect` and `wait`."""

import select
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec

from vertumnus.actions.address import address
from vertumnus.actions.protocol import (
    VERSION,
    Act,
    Answered,
    Bye,
    FromRun,
    Hello,
    Lines,
    Welcome,
    encode,
    from_run,
)
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.facts import Action

CONNECT_S = 2.0
"""How long a run may take to answer hello [s]."""
HUNG_UP = "the run has hung up"


class NotConnected(VertumnusError):
    """The run cannot be reached; the message says why."""


class ActionClient:
    """One connection to a run."""

    def __init__(self, path: Path, who: str, *, reads_only: bool = False) -> None:
        """Connect to the socket at *path* as *who*. Raises NotConnected."""
        self._lines = Lines()
        self._acts = 0
        self._inbox: list[FromRun] = []
        self._end: str | None = None
        """Why nothing more will come."""
        self._socket = _connected(path)
        try:
            self._send(Hello(version=VERSION, who=who, reads_only=reads_only))
            welcome = self._await(lambda message: isinstance(message, Welcome), CONNECT_S)
            assert isinstance(welcome, Welcome)
            self.welcome = welcome
        except BaseException:
            self._socket.close()
            raise

    def act(
        self,
        action: Action,
        workers: tuple[CpGroup, ...] = (),
        setting: str = "",
        value: int | float | str | None = None,
    ) -> int:
        """Ask for something; return the number that its answer will have. Raises NotConnected."""
        self._acts += 1
        act = Act(number=self._acts, action=action, workers=workers, setting=setting, value=value)
        self._send(act)
        return self._acts

    def answers(self) -> list[Answered]:
        """Return the answers that have come. Raises NotConnected after the last one of a run that hung up."""
        while self._end is None and select.select([self._socket], [], [], 0.0)[0]:
            self._receive()
        answers = [message for message in self._inbox if isinstance(message, Answered)]
        self._inbox.clear()
        if self._end is not None and not answers:
            raise NotConnected(self._end)
        return answers

    def wait(self, number: int, timeout_s: float) -> Answered:
        """Return the answer to act *number*. Raises NotConnected when there is none in *timeout_s* [s]."""
        answer = self._await(
            lambda message: isinstance(message, Answered) and message.number == number, timeout_s
        )
        assert isinstance(answer, Answered)
        return answer

    def close(self) -> None:
        """Hang up; safe to call twice."""
        self._socket.close()

    def _await(self, is_wanted: Callable[[FromRun], bool], timeout_s: float) -> FromRun:
        while True:
            for message in self._inbox:
                if is_wanted(message):
                    self._inbox.remove(message)
                    return message
            if self._end is not None:
                raise NotConnected(self._end)
            if not select.select([self._socket], [], [], timeout_s)[0]:
                raise NotConnected(f"no answer in {timeout_s:g} s")
            self._receive()

    def _send(self, message: Hello | Act) -> None:
        try:
            self._socket.sendall(encode(message))
        except OSError:
            self._receive()  # its last words, if there were any
            raise NotConnected(self._end or HUNG_UP) from None

    def _receive(self) -> None:
        try:
            content = self._socket.recv(65_536)
            messages = [from_run(line) for line in self._lines.feed(content)]
        except OSError:
            self._end = HUNG_UP
            return
        except (ValueError, msgspec.MsgspecError) as error:
            self._end = f"the run cannot be understood: {error}"
            return
        self._inbox += messages
        if messages and isinstance(messages[-1], Bye):
            self._end = messages[-1].reason
        elif not content:
            self._end = HUNG_UP


def _connected(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(CONNECT_S)
    try:
        with address(path) as name:
            made.connect(name)
    except OSError as error:
        made.close()
        raise NotConnected(f"{path.name}: {error.strerror or error}") from error
    return made
