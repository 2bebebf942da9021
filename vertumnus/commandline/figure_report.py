"""The whole pass behind the verb ``figures``: what is missing is run, then the report is made of all runs.

A report that is whole gets `MADE_OF` beside it. Each part is looked at before it is used: what
changes meanwhile is a change to the next call.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, OK, worst
from vertumnus.commandline.figure_kept import MADE_OF, MadeOf
from vertumnus.commandline.figure_runs import Swept, make_runs, wanted_sweeps
from vertumnus.commandline.figure_sources import of_report, of_runs, of_traces
from vertumnus.commandline.figure_wanted import Wanted
from vertumnus.commandline.messages import tell
from vertumnus.report.compare.members import Members, members_by
from vertumnus.report.paper.chapter import Runs
from vertumnus.report.paper.write import PAGES, Illustrated, illustrated, report_files, write_files


class Report(NamedTuple):
    """A report that has been made."""

    files: Mapping[str, bytes]
    """By name, its pages last."""
    remarks: Sequence[str]
    """What is to be told of it."""
    failures: Sequence[str]
    """The chapters that could not be made, each with the reason."""
    is_whole: bool
    """Whether every chapter could be made, and every job has a run in it."""


def make_report(wanted: Wanted, out: Path, places: int | None, given: Mapping[str, str] | None) -> int:
    """Make the missing runs, *places* simulated ones at a time, then the report of all; return the exit code.

    *given* is what it begins from (figure_sources). Raises ConfigError before anything starts when a job
    cannot run, and when a file cannot be written.
    """
    swept = wanted_sweeps(wanted)
    traces = tuple(dict.fromkeys(trace for each in swept for job in each.jobs for trace in job.traces))
    before = of_traces(traces)
    code = make_runs(swept, wanted, places)
    if code == INTERRUPTED:
        return code
    sweeps = tuple(each.sweep for each in swept)
    before |= of_runs(wanted.runs_dir, sweeps)
    report = _report(swept, wanted)
    kept = {}
    if code == OK and report.is_whole and given is not None:
        parts = {**given, **before, **of_report(report.files)}
        kept = {MADE_OF: _made_of(report, parts, sweeps, traces)}
    write_files(out, {**report.files, **kept})
    _show(report, out)
    return worst([code, FAILED if report.failures else OK])


def _made_of(report: Report, parts: Mapping[str, str], sweeps: Sequence[str], traces: Sequence[str]) -> bytes:
    return MadeOf(
        parts=dict(parts),
        sweeps=tuple(sweeps),
        traces=tuple(traces),
        files=tuple(report.files),
        pages=PAGES,
        remarks=tuple(report.remarks),
    ).encoded


def _show(report: Report, out: Path) -> None:
    for page in PAGES:
        print(out / page)
    for line in (*report.remarks, *report.failures):
        tell(line)


def _report(swept: Sequence[Swept], wanted: Wanted) -> Report:
    members = members_by(wanted.runs_dir, {each.experiment: [each.sweep] for each in swept})
    runs = Runs(wanted.runs_dir, members)
    made = [illustrated(entry, runs, wanted.overrides) for entry in wanted.entries]
    failures = [
        f"{each.section.entry.name} could not be made: {each.section.failure}"
        for each in made
        if each.section.failure
    ]
    return Report(
        report_files(made, _narrowed(wanted)),
        _remarks(made),
        failures,
        is_whole=not failures and all(_has_every_job(each, members[each.experiment]) for each in swept),
    )


def _has_every_job(swept: Swept, members: Members) -> bool:
    there = {(run.row["asked_hash"], run.row["code_hash"]) for run in members.runs}
    return all((job.config_hash, job.code_hash) in there for job in swept.jobs)


def _remarks(made: Sequence[Illustrated]) -> list[str]:
    is_short = any(each.section.left_out for each in made)
    return ["some runs are left out; the report names them"] if is_short else []


def _narrowed(wanted: Wanted) -> list[str]:
    """Return what the report says of its runs."""
    narrowed = [*wanted.overrides, *(f"--only {word}" for word in wanted.only)]
    return [f"A slice, made with {' '.join(narrowed)}: no basis for conclusions."] if narrowed else []
