"""The processes of a sweep's jobs: as many at a time as there are places and memory for."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

from vertumnus.run.interrupts import interrupts_held
from vertumnus.sweep.job import Ending
from vertumnus.sweep.memory import Memory
from vertumnus.sweep.messages import Ended, Progressed, Said
from vertumnus.sweep.process import Heard
from vertumnus.sweep.progress import SweepProgress

LOOK_S = 1.0
"""How often memory is looked at when nothing is heard [s]."""


class RunningJob(Protocol):
    """What the pool needs of a job's process."""

    @property
    def peak_bytes(self) -> int:
        """Its largest resident size so far."""

    def ask_to_end(self) -> None:
        """Interrupt its run, which it closes before it ends."""

    def last_words(self) -> tuple[str, ...]:
        """Wait for its end and return what it wrote outside its messages."""


Start: TypeAlias = Callable[[int, "SimpleQueue[Heard]"], RunningJob]
"""Starts the process of a job, which is heard through the queue until it says None."""


class JobPool:
    """Runs jobs, each in a process."""

    def __init__(
        self,
        numbers: Iterable[int],
        start: Start,
        places: int,
        progress: SweepProgress,
        memory: Memory,
        pair_of: Mapping[int, object] | None = None,
    ) -> None:
        """*numbers* are the jobs in their order, at most *places* of which run at once.

        With *pair_of* only jobs that it maps to equals run at once: they meet the same machine, minute by
        minute, and can be paired.
        """
        self.endings: dict[int, Ending] = {}
        """How jobs ended, by number; those that never started are not in it."""
        self._waiting = deque(numbers)
        self._start = start
        self._places = places
        self._progress = progress
        self._memory = memory
        self._pair_of = pair_of
        self._running: dict[int, RunningJob] = {}
        self._heard: SimpleQueue[Heard] = SimpleQueue()

    def run(self) -> bool:
        """Run all jobs and return True; False when an interrupt ended them early.

        The jobs that run are then interrupted too, and waited for.
        """
        try:
            self._until_nothing_is_left()
        except KeyboardInterrupt:
            self._waiting.clear()
            self._progress.interrupted()
            for process in self._running.values():
                process.ask_to_end()
            self._until_nothing_is_left()
            return False
        return True

    def _until_nothing_is_left(self) -> None:
        while self._waiting or self._running:
            while self._waiting and self._may_begin(self._waiting[0]):
                self._begin(self._waiting.popleft())
            try:
                heard = self._heard.get(timeout=LOOK_S)
            except Empty:
                continue
            self._take(heard)

    def _may_begin(self, number: int) -> bool:
        if len(self._running) >= self._places or not self._has_memory():
            return False
        pair_of = self._pair_of
        return pair_of is None or all(pair_of[other] == pair_of[number] for other in self._running)

    def _has_memory(self) -> bool:
        return self._memory.has_room(process.peak_bytes for process in self._running.values())

    def _begin(self, number: int) -> None:
        with interrupts_held():  # a process that was started is one that will be asked to end
            self._running[number] = self._start(number, self._heard)
        self._progress.started(number)

    def _take(self, heard: Heard) -> None:
        match heard.message:
            case Progressed(done, planned):
                self._progress.moved(heard.number, done, planned)
            case Said(line):
                self._progress.said(heard.number, line)
            case Ended(ending):
                self.endings[heard.number] = ending
            case None:
                self._close(heard.number)

    def _close(self, number: int) -> None:
        last_words = self._running.pop(number).last_words()
        ending = self.endings.setdefault(number, Ending("failed", problems=last_words))
        for line in ending.problems:
            self._progress.said(number, line)
        self._progress.ended(number, f"{ending.status} {ending.verdict or ''}".rstrip())
