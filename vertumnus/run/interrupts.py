"""Ctrl-C once ends a run and keeps what it has; the closing itself is not interrupted."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for the first SIGINT or SIGTERM and ignore the later ones.

    Outside the main thread, where signals are not delivered, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = False

    def raise_once(_number: int, _frame: FrameType | None) -> None:
        nonlocal seen
        if not seen:
            seen = True
            raise KeyboardInterrupt

    before = {number: signal.signal(number, raise_once) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
