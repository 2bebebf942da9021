"""The reports that come with Vertumnus: one .sql file each, with the run as ``$run_id``."""

import re
from importlib.resources import files
from itertools import takewhile
from pathlib import Path

from vertumnus.domain.errors import ConfigError
from vertumnus.report.store import Answer, query


def report_names() -> list[str]:
    """Return the names of the reports, sorted."""
    found = (entry.name for entry in files("vertumnus.report").iterdir())
    return sorted(name.removesuffix(".sql") for name in found if name.endswith(".sql"))


def report_sql(name: str) -> str:
    """Return the statement of report *name*; raises ConfigError when there is none of that name."""
    if name not in report_names():
        raise ConfigError(f"report {name}: no such report; there are: {', '.join(report_names())}")
    return files("vertumnus.report").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def purpose_of(name: str) -> str:
    """Return what report *name* shows: the first sentence of `notes_of` it."""
    return re.split(r"(?<!sec)(?<!Fig)[.;] |[.;]$", notes_of(name), maxsplit=1)[0]


def notes_of(name: str) -> str:
    """Return what report *name* shows, and its columns: the comment that its statement begins with."""
    lines = takewhile(lambda line: line.startswith("--"), report_sql(name).splitlines())
    return " ".join(line.removeprefix("--").strip() for line in lines)


def answer_report(runs_dir: Path, name: str, run_id: str) -> Answer:
    """Return report *name* of run *run_id*; raises ConfigError."""
    return query(runs_dir, report_sql(name), {"run_id": run_id}, only=[run_id])
