"""Where a run's numbers come from: code, libraries, machine. No host name, no user, no paths."""

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import Struct

import vertumnus

LIBRARIES = ("msgspec", "numpy", "pyarrow", "duckdb", "hydra-core", "pyzmq", "torch")


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


def run_start(run_id: str, name: str, overrides: Iterable[str]) -> RunStart:
    """Return the RunStart of a run of this code on this machine."""
    return RunStart(
        run_id=run_id,
        name=name,
        overrides=tuple(overrides),
        git_revision=git_revision(),
        versions=library_versions(),
        cpu_model=cpu_model(),
        cores=os.cpu_count(),
    )


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
