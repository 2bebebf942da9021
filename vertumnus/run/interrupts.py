"""Ctrl-C once ends a run and keeps what it has: between two events, or while its engine waits.

Wherever else it comes, it is held until then: an event is taken as a whole, and what is recorded reaches log
and tables alike. Neither the opening nor the closing of a run is interrupted, and a second Ctrl-C changes
nothing. A run that hangs in an event can be killed; `vertumnus salvage` then makes its tables.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Interrupts:
    """What the signal handler of this process knows; signals are of the process, and so is this."""

    def __init__(self) -> None:
        self.holds = 0
        self.is_pending = False
        self.is_raised = False

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt for the first signal, now or when nothing holds it any more."""
        if self.holds:
            self.is_pending = True
        elif not self.is_raised:
            self.is_raised = True
            raise KeyboardInterrupt

    def let_through(self) -> None:
        """Raise what came while it was held, and keep holding the next."""
        self.is_pending = False
        if not self.is_raised:
            self.is_raised = True
            raise KeyboardInterrupt

    def release(self) -> None:
        """End one hold, and raise what came meanwhile."""
        self.holds -= 1
        if self.holds == 0 and self.is_pending:
            self.is_pending = False
            self.handle(0, None)


_interrupts = _Interrupts()


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for the first SIGINT or SIGTERM and ignore the later ones.

    Outside the main thread, where signals are not delivered, this does nothing.
    """
    if not _is_main():
        yield
        return
    _interrupts.is_raised = _interrupts.is_pending = False
    before = {number: signal.signal(number, _interrupts.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let an interrupt wait until the block has ended: what it makes is made whole or not at all.

    A signal mask would not do: another thread of the process may take the signal.
    """
    if not _is_main():
        yield
        return
    _interrupts.holds += 1
    try:
        yield
    finally:
        _interrupts.release()


def let_interrupt_through() -> None:
    """Raise KeyboardInterrupt if one is held: call it where nothing is half done."""
    if _interrupts.is_pending and _is_main():
        _interrupts.let_through()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
