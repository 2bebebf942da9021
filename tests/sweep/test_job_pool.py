"""Which job starts when, and what becomes of all of them: the pool with processes made of paper."""

from collections.abc import Callable
from io import StringIO
from queue import SimpleQueue

import pytest
from rich.console import Console

from vertumnus.sweep.job import Ending
from vertumnus.sweep.memory import Memory
from vertumnus.sweep.messages import Ended, Progressed, Said
from vertumnus.sweep.pool import JobPool
from vertumnus.sweep.process import Heard
from vertumnus.sweep.progress import SweepProgress

VALID = Ending("finished", "RUN", "VALID")


class Paper:
    """A process that ends as soon as it is heard, unless it is told to last until asked to end."""

    def __init__(self, number: int, heard: "SimpleQueue[Heard]", log: list[str], how: Ending | None) -> None:
        self.peak_bytes = 1
        self._say: Callable[[object], None] = lambda message: heard.put(Heard(number, message))  # type: ignore[arg-type]
        self._number = number
        self._log = log
        log.append(f"start {number}")
        self._say(Progressed(5, 10))
        self._say(Said("hello"))
        if how is not None:
            self._say(Ended(how))
            self._say(None)

    def ask_to_end(self) -> None:
        """Close as an interrupted run does."""
        self._log.append(f"ask {self._number}")
        self._say(Ended(Ending("interrupted", "RUN", "INVALID")))
        self._say(None)

    def last_words(self) -> tuple[str, ...]:
        """Tell what a crash would have left."""
        self._log.append(f"gone {self._number}")
        return ("Segmentation fault",)


class Table:
    """A pool over papers, and what it showed."""

    def __init__(self, how: dict[int, Ending | None], places: int, memory: Memory | None = None) -> None:
        self.log: list[str] = []
        self.shown = StringIO()
        labels = {number: f"seed={number}" for number in how}
        self.progress = SweepProgress(Console(file=self.shown, width=200), labels, len(how))
        roomy = memory or Memory(lambda: 1 << 50, first_guess=1)

        def start(number: int, heard: "SimpleQueue[Heard]") -> Paper:
            return Paper(number, heard, self.log, how[number])

        self.pool = JobPool(how, start, places, self.progress, roomy)

    def run(self) -> bool:
        """Run the pool."""
        with self.progress:
            return self.pool.run()


@pytest.mark.parametrize("places", [1, 2, 7])
def test_every_job_runs_once_in_order(places: int) -> None:
    """At most *places* at a time, the next when one has gone."""
    table = Table(dict.fromkeys(range(1, 6), VALID), places)
    assert table.run()
    assert table.pool.endings == dict.fromkeys(range(1, 6), VALID)
    starts = [line for line in table.log if line.startswith("start")]
    assert starts == [f"start {number}" for number in range(1, 6)]
    running = [
        sum(line.startswith("start") for line in table.log[:place])
        - sum(line.startswith("gone") for line in table.log[:place])
        for place in range(len(table.log) + 1)
    ]
    assert max(running) == min(places, 5)


def test_only_equals_run_side_by_side() -> None:
    """With three places a pair runs, then the next pair, whose second has to wait for nobody."""
    table = Table(dict.fromkeys((1, 2, 3, 4), VALID), 3)
    pairs = {1: "a", 2: "a", 3: "b", 4: "b"}

    def start(number: int, heard: "SimpleQueue[Heard]") -> Paper:
        return Paper(number, heard, table.log, VALID)

    table.pool = JobPool(pairs, start, 3, table.progress, Memory(lambda: 1 << 50, first_guess=1), pairs)
    assert table.run()
    assert table.log == [
        f"{what} {n}" for pair in ((1, 2), (3, 4)) for what in ("start", "gone") for n in pair
    ]


def test_without_memory_one_runs_at_a_time() -> None:
    """Places are there, memory is not."""
    table = Table(dict.fromkeys((1, 2, 3), VALID), 3, Memory(lambda: 0))
    assert table.run()
    assert table.log == ["start 1", "gone 1", "start 2", "gone 2", "start 3", "gone 3"]


def test_a_process_that_dies_is_a_failed_job_and_no_more() -> None:
    """It ended without a message: its last words are kept and shown, and the others run."""
    table = Table({1: VALID, 2: VALID}, 1)
    starts = iter((True, False))

    def start(number: int, heard: "SimpleQueue[Heard]") -> Paper:
        if next(starts):
            paper = Paper(number, heard, table.log, None)
            heard.put(Heard(number, None))
            return paper
        return Paper(number, heard, table.log, VALID)

    table.pool = JobPool((1, 2), start, 1, table.progress, Memory())
    assert table.run()
    assert table.pool.endings == {1: Ending("failed", problems=("Segmentation fault",)), 2: VALID}
    assert "job 1: Segmentation fault" in table.shown.getvalue()
    assert "job 1 of 2: seed=1: failed (1 of 2 done" in table.shown.getvalue()


def test_an_interrupt_closes_what_runs_and_starts_nothing_more() -> None:
    """Both jobs that run are asked to end and waited for; the third has no ending."""
    how = {1: None, 2: None, 3: VALID}
    table = Table(how, 2)
    table.pool._take = _interrupted_at_first(table.pool._take)  # type: ignore[method-assign]
    assert not table.run()
    assert table.log == ["start 1", "start 2", "ask 1", "ask 2", "gone 1", "gone 2"]
    assert table.pool.endings == dict.fromkeys((1, 2), Ending("interrupted", "RUN", "INVALID"))
    assert "The same command goes on with the rest" in table.shown.getvalue()


def _interrupted_at_first(take: Callable[[Heard], None]) -> Callable[[Heard], None]:
    interrupts = iter((KeyboardInterrupt,))

    def interrupted(heard: Heard) -> None:
        for interrupt in interrupts:
            raise interrupt
        take(heard)

    return interrupted
