"""Whether this machine has the memory for one more job beside those that run."""

from collections.abc import Callable, Iterable
from pathlib import Path

from vertumnus.live.machine import available_memory_bytes

FIRST_GUESS = 768 << 20
"""Taken for a job's peak until one has been seen to need more [bytes]."""
KEPT_FREE = 512 << 20
"""For everything else on the machine [bytes]."""


class Memory:
    """What jobs were seen to need, against what is there."""

    def __init__(
        self, available: Callable[[], int] = available_memory_bytes, first_guess: int = FIRST_GUESS
    ) -> None:
        """*available* tells what processes may still take [bytes]."""
        self._available = available
        self._peak = first_guess

    def has_room(self, running: Iterable[int]) -> bool:
        """Return whether another job fits beside those whose peaks so far are *running* [bytes].

        Those are taken to grow to the largest peak seen of any job. One job always fits: there is no
        way to run it with less.
        """
        peaks = list(running)
        self._peak = max([self._peak, *peaks])
        if not peaks:
            return True
        to_come = sum(self._peak - peak for peak in peaks)
        return self._available() - KEPT_FREE - to_come >= self._peak


def peak_bytes(pid: int) -> int:
    """Return the largest resident size of process *pid* so far; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return next((int(kibibytes) << 10 for kibibytes in found), 0)
