"""What it costs to keep a record: appending to the log, reading it back, folding it into tables."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from vertumnus.domain.codec import Record
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import BATCH_RECORDS, LogHeader, LogWriter, read_log
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.bench.measure import Result, Settings, result, timed_ns
from vertumnus_profiling.bench.pools import simulated_config
from vertumnus_profiling.bench.simulator import run_recorded


def log(settings: Settings) -> Iterator[Result]:
    """Appending one record to the log, its share of encoding and writing included; reading one back."""
    header, records = recorded(settings)
    appends, reads = [], []
    with rare_collections():
        for repeat in range(settings.repeats):
            path = settings.scratch / f"log-{repeat}"
            writer = LogWriter(path, header)
            appends.append(timed_ns(partial(_append_all, writer, records)))
            writer.close()
            reads.append(timed_ns(partial(_read_all, path)))
            path.unlink()
    for name, took in (("append", appends), ("read", reads)):
        yield result(f"log/{name}", "us", [ns / 1_000 / len(records) for ns in took], len(records))


def fold(settings: Settings) -> Iterator[Result]:
    """Folding one record into the run's tables: request timeline, worker load, faults."""
    header, records = recorded(settings)
    took = []
    with rare_collections():
        for _ in range(settings.repeats):
            took.append(timed_ns(partial(_fold_all, RunFolds(header), records)))
    yield result("fold/record", "us", [ns / 1_000 / len(records) for ns in took], len(records))


def recorded(settings: Settings) -> tuple[LogHeader, list[Record]]:
    """Return the log of a short simulated run."""
    config = simulated_config(f"workload.requests={settings.size(3_000, 100)}")
    opened = read_log(run_recorded(config, settings.scratch).run.log)
    return opened.header, list(opened.records)


def _append_all(writer: LogWriter, records: Sequence[Record]) -> None:
    append = writer.append
    for source, body in records:
        append(source, body)
    writer.flush()


def _read_all(path: Path) -> None:
    for _ in read_log(path).records:
        pass


def _fold_all(folds: RunFolds, records: Sequence[Record]) -> None:
    for start in range(0, len(records), BATCH_RECORDS):
        folds.apply(records[start : start + BATCH_RECORDS])
    folds.finish()
