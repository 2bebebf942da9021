"""One console as the run's side of the socket sees it."""

import socket
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from vertumnus.actions.protocol import (
    LONGEST_NAME,
    VERSION,
    Act,
    Answered,
    Bye,
    FromConsole,
    FromRun,
    Hello,
    Lines,
    encode,
    from_console,
)


class Refusal(Exception):
    """Why a connection ends."""


class Connection:
    """Reads a console's messages and answers them."""

    def __init__(self, console: socket.socket) -> None:
        console.setblocking(False)
        self.socket = console
        self.hello: Hello | None = None
        """What it said first; None until then."""
        self._lines = Lines()

    def received(self) -> Iterator[FromConsole]:
        """Yield what came. Raises Refusal when the console has left or cannot be understood."""
        try:
            content = self.socket.recv(LONGEST_NAME * 1024)
        except BlockingIOError:
            return
        except OSError as error:
            raise Refusal("") from error
        if not content:
            raise Refusal("")
        try:
            for line in self._lines.feed(content):
                yield from_console(line)
        except (msgspec.MsgspecError, ValueError) as error:
            raise Refusal(f"not a message of version {VERSION}: {error}") from error

    def send(self, message: FromRun) -> None:
        """Send *message*. Raises Refusal when the console does not read."""
        try:
            if self.socket.send(line := encode(message)) < len(line):
                raise Refusal("")
        except OSError as error:
            raise Refusal("") from error

    def refuse(self, act: Act, reason: str) -> None:
        """Answer *act* without asking anybody."""
        self.send(Answered(number=act.number, action_id=None, accepted=False, reason=reason))

    def close(self, reason: str) -> None:
        """Say *reason*, if there is one, and hang up."""
        with suppress(Refusal):
            if reason:
                self.send(Bye(reason=reason))
        self.socket.close()


def checked_hello(hello: Hello) -> Hello:
    """Return *hello*. Raises Refusal when its version or its name cannot be."""
    if hello.version != VERSION:
        raise Refusal(f"this run speaks version {VERSION} of the action socket, found {hello.version}")
    if not (hello.who.isprintable() and len(hello.who.strip()) > 0 and len(hello.who) <= LONGEST_NAME):
        raise Refusal(f"who must be 1 to {LONGEST_NAME} printable characters, got {hello.who!r}")
    return hello
