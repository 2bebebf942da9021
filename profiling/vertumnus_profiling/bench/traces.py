"""How fast a trace file is read: rows parsed, checked, sorted and windowed, none of them kept."""

from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.formats.known import FormatName
from vertumnus.trace.formats.writing import Target, TraceWriter
from vertumnus.trace.load import pass_rows
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.tool_agent import TICK_NS, TICKS, tool_agent
from vertumnus_profiling.bench.measure import Result, Settings, result, timed_ns

FORMATS: tuple[Target, ...] = ("mooncake", "parquet")


def trace(settings: Settings) -> Iterator[Result]:
    """Reading one row of a trace file, tool-agent's hour over and over, as JSON lines and as Parquet."""
    rows = settings.size(100_000, 1_000)
    for to in FORMATS:
        path = settings.scratch / f"trace.{to}"
        with path.open("wb") as file:
            TraceWriter(to, 512, has_times=True, is_packed=False).write(file, _rows(rows))
        took = [timed_ns(partial(_read_all, path, to)) for _ in range(settings.repeats)]
        path.unlink()
        yield result(f"trace/{to}", "1/s", [rows * 1e9 / ns for ns in took], rows)


def _rows(count: int) -> Iterator[TraceRow]:
    """Yield *count* rows of the tool-agent hour, again and again later."""
    hour = tool_agent(0)
    for number, row in zip(range(count), cycle(hour), strict=False):
        yield row._replace(arrival_ns=row.arrival_ns + number // len(hour) * TICKS * TICK_NS)


def _read_all(path: Path, format_name: FormatName) -> None:
    workload = WorkloadConfig(name="bench", purpose="rows to read", path=str(path), format=format_name)
    pass_rows(workload, 0, lambda passing: sum(1 for _ in passing))
