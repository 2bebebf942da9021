"""Reports as pictures: which have one, and the way to a file; matplotlib is imported only to draw."""

from importlib.util import find_spec
from pathlib import Path

from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole
from vertumnus.report.timeline import load_timeline

FIGURES = ("reconfig_timeline",)
"""Reports that can be drawn."""
KINDS = ("png", "svg", "pdf")


def require_drawable(name: str, file: Path) -> None:
    """Raise ConfigError unless report *name* can be drawn into *file* here."""
    problems = []
    if name not in FIGURES:
        problems.append(f"--figure: report {name} has no picture; allowed: {', '.join(FIGURES)}")
    if file.suffix.removeprefix(".") not in KINDS:
        endings = ", ".join(f".{kind}" for kind in KINDS)
        problems.append(f"--figure: found {file}, its name must end in one of {endings}")
    if not file.parent.is_dir():
        problems.append(f"--figure: found {file}, but there is no folder {file.parent}")
    if find_spec("matplotlib") is None:
        problems.append("--figure: matplotlib is not installed; pip install 'vertumnus[figures]'")
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
