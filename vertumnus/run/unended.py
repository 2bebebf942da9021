"""A run whose end finds no room on the disk."""

from pathlib import Path
from shlex import quote

from vertumnus.domain.errors import VertumnusError
from vertumnus.records.run_dir import RunDir


class UnendedRun(VertumnusError):
    """The disk refuses a run's end; its log holds what was recorded until then."""

    def __init__(self, run: RunDir, error: Exception, before: str | None) -> None:
        """Say why *run* could not be ended and what is left; *before* is what it had failed of, if any."""
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        failed = "" if before is None else f" ({before})"
        runs_dir = run.path.parent
        place = "" if runs_dir == Path("runs") else f" --runs-dir {quote(str(runs_dir))}"
        super().__init__(
            f"{why}; the run has stopped{failed} and what was recorded is kept: "
            f"when there is room, vertumnus salvage {run.run_id}{place} makes its tables"
        )
