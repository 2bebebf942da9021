"""Where a run's numbers come from: code, libraries, machine. No host name, no user, no paths."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import Struct

import vertumnus
from vertumnus.records.planned import Planned

LIBRARIES = ("msgspec", "numpy", "pyarrow", "duckdb", "hydra-core", "pyzmq", "torch")

NOT_IN_NUMBERS = ("commandline", "config", "report", "sweep", "cli.py", "__main__.py")
"""Parts of the package that no number of a run depends on once its config is resolved."""


UNLABELLED = ("experiment", "seed", "runs_dir", "hydra.searchpath")
"""Keys that say what is repeated and where, not what a run is beside others."""


class RunStart(Struct, frozen=True, kw_only=True):
    """What is known of a run before its first request."""

    run_id: str
    """A ULID, so that names sort by time."""
    name: str
    """Of the experiment."""
    overrides: tuple[str, ...]
    """As given on the command line."""
    git_revision: str | None = None
    """With "+changes" where the checkout differed; None outside a checkout."""
    versions: dict[str, str] = {}
    cpu_model: str | None = None
    cores: int | None = None
    sweep: str | None = None
    """The sweep that started the run; None for a run by itself."""
    asked_hash: str | None = None
    """Of the configuration as asked for, before the run settled its first composition."""
    code_hash: str | None = None
    """Of the code that its numbers depend on."""
    planned: Planned | None = None
    """None in runs of versions that did not note it."""

    @property
    def label(self) -> str | None:
        """What was typed but for experiment, seed and folders, as comparisons name groups."""
        words = (word.lstrip("+") for word in self.overrides)
        return " ".join(word for word in words if word.partition("=")[0] not in UNLABELLED) or None


def run_start(
    run_id: str,
    name: str,
    overrides: Sequence[str],
    planned: Planned,
    *,
    sweep: str | None = None,
    asked_hash: str | None = None,
    is_live: bool = False,
) -> RunStart:
    """Return the RunStart of a run of this code on this machine."""
    return RunStart(
        run_id=run_id,
        name=name,
        overrides=tuple(overrides),
        sweep=sweep,
        asked_hash=asked_hash,
        code_hash=code_hash(is_live),
        planned=planned,
        git_revision=git_revision(),
        versions=library_versions(),
        cpu_model=cpu_model(),
        cores=os.cpu_count(),
    )


@cache
def code_hash(is_live: bool) -> str:
    """Return the SHA-256 of the source that the numbers of a run depend on [hex, 16 digits].

    A simulated run depends on nothing of the live engine.
    """
    package = Path(vertumnus.__file__).parent
    left_out = NOT_IN_NUMBERS if is_live else (*NOT_IN_NUMBERS, "live")
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        if place.parts[0] not in left_out:
            digest.update(f"{place.as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def library_versions() -> dict[str, str]:
    """Return the versions of Python and of those `LIBRARIES` that are installed, importing none."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def cpu_model() -> str | None:
    """Return the processor's name as the kernel tells it; None where it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None)


def git_revision() -> str | None:
    """Return the commit that this package runs from; None when it is no git checkout."""
    checkout = Path(vertumnus.__file__).parent.parent
    if not (checkout / ".git").exists():
        return None
    commit = _git(checkout, "rev-parse", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+changes" if commit and changed else commit


def _git(checkout: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
