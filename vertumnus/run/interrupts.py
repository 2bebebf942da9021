"""Ctrl-C once ends a run and keeps what it has; neither its opening nor its closing is interrupted."""

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
    if threading.current_thread() is not threading.main_thread():
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
    _interrupts.holds += 1
    try:
        yield
    finally:
        _interrupts.release()
