"""How far a sweep is: a bar for each job that runs on a terminal, a line for each that ends elsewhere."""

from collections.abc import Mapping
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class SweepProgress:
    """Told what becomes of the jobs, it shows that on stderr."""

    def __init__(self, console: Console, labels: Mapping[int, str], to_do: int) -> None:
        """*labels* are what the jobs are called, by number; *to_do* of them are to run."""
        self._console = console
        self._labels = labels
        self._to_do = to_do
        self._ended = 0
        self._shares: dict[int, float] = {}
        self._began = monotonic()
        self._bars: dict[int, TaskID] = {}
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._drawn = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._total = self._drawn.add_task("jobs", total=to_do, left="")

    def __enter__(self) -> "SweepProgress":
        self._drawn.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._drawn.stop()

    def started(self, number: int) -> None:
        """Tell that job *number* runs."""
        self._shares[number] = 0.0
        self._bars[number] = self._drawn.add_task(
            f"job {number} {self._labels[number]}"[:60], total=None, left=""
        )

    def moved(self, number: int, done: int, planned: int) -> None:
        """Tell how far job *number* is, in requests."""
        self._shares[number] = done / planned if planned else 0.0
        self._drawn.update(self._bars[number], completed=done, total=planned)
        self._drawn.update(self._total, completed=self._ended, left=self._left())

    def said(self, number: int, line: str) -> None:
        """Pass on a line of job *number*."""
        self.say(f"job {number}: {line}")

    def ended(self, number: int, how: str) -> None:
        """Tell that job *number* has ended, and how."""
        self._shares.pop(number)
        self._drawn.remove_task(self._bars.pop(number))
        self._ended += 1
        self._drawn.update(self._total, completed=self._ended, left=self._left())
        left = f", {self._left()}" if self._left() else ""
        job = f"job {number} of {len(self._labels)}: {self._labels[number]}"
        self.say(f"{job}: {how} ({self._ended} of {self._to_do} done{left})")

    def interrupted(self) -> None:
        """Tell that no further job will start."""
        self._to_do = self._ended + len(self._shares)
        self._drawn.update(self._total, total=self._to_do)
        self.say("interrupted; runs under way are closed. The same command goes on with the rest")

    def say(self, line: str) -> None:
        """Show *line*."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _left(self) -> str:
        """Return the time left, when all jobs to come are taken to be like those so far."""
        done = self._ended + sum(self._shares.values())
        if done == 0 or self._ended == self._to_do:
            return ""
        seconds = (monotonic() - self._began) * (self._to_do - done) / done
        return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
