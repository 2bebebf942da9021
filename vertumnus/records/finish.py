"""The end of a run: from folds to tables and verdict; also for a run that was killed."""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Nanoseconds
from vertumnus.domain.wording import counted
from vertumnus.records.decisions import CandidateRow
from vertumnus.records.faults import LOSSES
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import LogHeader, is_locked, read_log
from vertumnus.records.lower_bound import LowerBound
from vertumnus.records.metrics import Metrics, summarise
from vertumnus.records.provenance import RunStart
from vertumnus.records.request_record import RequestRecord
from vertumnus.records.run_dir import RunDir, RunEnd
from vertumnus.records.run_row import RunRow, RunStatus
from vertumnus.records.tables import write_table
from vertumnus.records.verdict import Books, judge


class PlacedRecord(NamedTuple):
    """A row of the requests table: the record, and where it stands in its run."""

    record: RequestRecord
    measured: bool
    """Whether it arrived after the warm-up."""
    length_bucket: str
    ttft_bound_ns: Nanoseconds | None
    """What no placement can beat; see `LowerBound`."""


def finish_run(
    run: RunDir,
    header: LogHeader,
    folds: RunFolds,
    *,
    status: RunStatus,
    books: Books | None,
    wall_s: float | None,
    candidates: Sequence[CandidateRow] = (),
    failure: str | None = None,
    others_cpu_share: float | None = None,
) -> RunEnd:
    """Write the tables of *run* and then, as the last file, how it ended.

    *folds* have read the whole log, which is still open, so that the run counts as running until
    it has ended; *failure* is the error that ended a failed run. Raises
    ConfigError when the folder has lost its start, OSError when the disk refuses; the run then
    stays unfinished.
    """
    start = run.start()
    if start is None:
        raise ConfigError(f"{run.started}: missing or damaged; the run cannot be named without it")
    folds.finish()
    records = folds.requests
    bound = LowerBound.of(header)
    metrics = summarise(records, header.records, bound)
    failures = () if failure is None else (failure,)
    problems = (*_never_arrived(start, metrics), *_losses(folds), *folds.problems)
    verdict = judge(metrics, books, (*failures, *problems), is_interrupted=status == "interrupted")
    row = RunRow(
        start=start,
        header=header,
        status=status,
        verdict=verdict,
        metrics=metrics,
        wall_s=wall_s,
        sim_ns=folds.now,
        others_cpu_share=others_cpu_share,
    )
    write_table(run.table("requests"), "requests", _placed(records, header, bound))
    write_table(run.table("decisions"), "decisions", candidates)
    write_table(run.table("workers"), "workers", folds.samples)
    write_table(run.table("windows"), "windows", folds.windows)
    write_table(run.table("reconfigs"), "reconfigs", folds.reconfigs)
    write_table(run.table("cache_ops"), "cache_ops", folds.cache_ops)
    write_table(run.table("forecasts"), "forecasts", folds.forecasts)
    write_table(run.table("trie_samples"), "trie_samples", folds.trie_samples)
    write_table(run.table("hot_prefixes"), "hot_prefixes", folds.hot_prefixes)
    write_table(run.table("faults"), "faults", folds.faults)
    write_table(run.table("runs"), "runs", [row])
    end = RunEnd(status=status, verdict=verdict.verdict, reasons=verdict.reasons)
    run.close(end)
    return end


def _never_arrived(start: RunStart, metrics: Metrics) -> tuple[str, ...]:
    """Return what an end before its time kept from the run."""
    planned = start.planned.requests if start.planned is not None else metrics.requests
    missing = planned - metrics.requests
    return (f"{missing} of {counted(planned, 'planned request')} never arrived",) if missing > 0 else ()


def _losses(folds: RunFolds) -> tuple[str, ...]:
    """Return what makes the numbers those of another pool than the one configured."""
    lost = [f"{fault.subject} ({fault.reason})" for fault in folds.faults if fault.kind in LOSSES]
    return (f"lost during the run: {', '.join(lost)}",) if lost else ()


def salvage(run: RunDir) -> RunEnd:
    """Rebuild the tables of a killed run from its log; its status becomes "interrupted".

    The decisions table stays empty: candidates are not in the log. Raises ConfigError when the run
    is still going, has ended already, or left no readable log.
    """
    if run.end() is not None:
        raise ConfigError(f"run {run.run_id}: has ended and needs no salvage")
    if is_locked(run.log):
        raise ConfigError(f"run {run.run_id}: is still running; wait for its end, or stop it first")
    header, records = read_log(run.log)
    folds = RunFolds(header)
    folds.apply(records)
    cut = "the log's last records are lost" if records.truncated else None
    run.actions.unlink(missing_ok=True)  # nobody listens any more, and a killed run could not take it away
    return finish_run(run, header, folds, status="interrupted", books=None, wall_s=None, failure=cut)


def _placed(records: Sequence[RequestRecord], header: LogHeader, bound: LowerBound) -> list[PlacedRecord]:
    config = header.records
    warmup = config.warmup_requests(len(records))
    return [
        PlacedRecord(record, place >= warmup, config.length_bucket(record.input_tokens), bound.ttft(record))
        for place, record in enumerate(records)
    ]
