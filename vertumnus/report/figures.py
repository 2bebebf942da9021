"""Reports as pictures: which have one, and the way to a file; matplotlib is imported only to draw."""

from pathlib import Path

from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole
from vertumnus.report.output_file import drawing_problems
from vertumnus.report.timeline import load_timeline

FIGURES = ("reconfig_timeline",)
"""Reports that can be drawn."""


def require_drawable(name: str, file: Path, *, replace: bool = False) -> None:
    """Raise ConfigError unless report *name* can be drawn into *file* here; *replace* lets it be there."""
    problems = []
    if name not in FIGURES:
        problems.append(f"--figure: report {name} has no picture; allowed: {', '.join(FIGURES)}")
    problems += drawing_problems(file, replace=replace)
    if problems:
        raise ConfigError(*problems)


def draw_report(runs_dir: Path, run_id: str, file: Path) -> None:
    """Draw the timeline of the ended run *run_id* into *file*; `require_drawable` comes first.

    Raises ConfigError when there is nothing to draw or the file cannot be written.
    """
    timeline = load_timeline(runs_dir, run_id)
    from vertumnus.report.timeline_figure import draw_timeline  # here: it imports matplotlib

    picture = draw_timeline(timeline, file.suffix.removeprefix("."))
    try:
        write_whole(file, lambda out: out.write(picture))
    except OSError as error:
        raise ConfigError(f"--figure: {file}: cannot be written: {error.strerror}") from error
