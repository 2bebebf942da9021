"""Results as lines of text, each shown as soon as it is measured."""

from collections.abc import Sequence
from typing import TextIO

from vertumnus.domain.wording import counted
from vertumnus_profiling.bench.machine import Machine
from vertumnus_profiling.bench.measure import Result, Skipped, Unit

NAME_WIDTH = 38

_SPELLED: dict[Unit, str] = {"us": "µs", "ns": "ns", "1/s": "/s", "bytes/s": "GB/s", "x": "x"}


class Table:
    """Writes one line for each outcome, below column headings."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._line(_row("benchmark", ("median", "P10", "P90"), "", "n", "per repeat"))

    def show(self, outcome: Result | Skipped) -> None:
        """Write *outcome*."""
        if isinstance(outcome, Skipped):
            self._line(f"{outcome.name:<{NAME_WIDTH}} skipped: {outcome.reason}")
        else:
            unit = outcome.unit
            numbers = [number(value, unit) for value in (outcome.median, outcome.p10, outcome.p90)]
            self._line(_row(outcome.name, numbers, _SPELLED[unit], str(outcome.n), f"{outcome.per_repeat:,}"))

    def _line(self, text: str) -> None:
        print(text, file=self._file, flush=True)


def _row(name: str, numbers: Sequence[str], unit: str, repeats: str, per_repeat: str) -> str:
    columns = " ".join(f"{text:>11}" for text in numbers)
    return f"{name:<{NAME_WIDTH}} {columns} {unit:<5}{repeats:>3} {per_repeat:>11}"


def number(value: float, unit: Unit) -> str:
    """Return *value* to three or more significant digits; bytes/s as GB/s."""
    if unit == "bytes/s":
        value /= 1e9
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def heading(machine: Machine) -> str:
    """Return the lines that say where the numbers come from."""
    load = machine.others_at_start
    libraries = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return "\n".join(
        (
            f"machine    {machine.cpu_model or 'unknown processor'}, {counted(machine.cores, 'core')}",
            f"software   {libraries}",
            f"revision   {machine.git_revision or 'no checkout'}",
            f"load       {'unknown' if load is None else f'{load:.0%} of the cores in use at the start'}",
            "",
        )
    )
