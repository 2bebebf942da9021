"""The processes that trials run on: a Ctrl-C is for their parent alone."""

import os
import signal
from collections.abc import Mapping
from typing import Any

from vertumnus_profiling.tune.trials import Asked, Runners


def holds_interrupts(_tree: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the process, and whether an interrupt would not reach it."""
    return os.getpid(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_process_never_sees_an_interrupt_from_its_start_on() -> None:
    """Nor does its parent hold them any longer than it takes to start one."""
    with Runners(2, holds_interrupts) as runners:
        found = dict(runners.run([Asked((0, number), {}) for number in range(4)]))
    assert {held for _, held in found.values()} == {True}
    assert os.getpid() not in {process for process, _ in found.values()}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
