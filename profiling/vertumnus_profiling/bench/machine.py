"""The machine that the numbers were made on, and how busy others kept it."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.wording import counted
from vertumnus.records.provenance import cpu_model, git_revision, library_versions

BUSY_SHARE = 0.2
"""Above this share of the cores in other hands, times grow visibly."""

_STAT = Path("/proc/stat")


class Machine(Struct, frozen=True, kw_only=True):
    """What a reader needs to know to judge the numbers; no host name, no user, no paths."""

    cpu_model: str | None
    cores: int
    versions: dict[str, str]
    """Of Python and the libraries that are installed."""
    git_revision: str | None
    others_at_start: float | None
    """Share of all cores that other processes used just before; None where the system does not tell."""


class CpuTicks(NamedTuple):
    """Time that all cores together have spent since boot, in clock ticks."""

    busy: int
    """By other processes than this one and the children that it has waited for."""
    total: int


class LoadWatch:
    """The share of the cores that others use from now on."""

    def __init__(self) -> None:
        self._before = cpu_ticks()

    def others(self) -> float | None:
        """Return their mean share so far; None where the system does not tell."""
        return busy_share(self._before, cpu_ticks())


def look_at_machine(watch_s: float) -> Machine:
    """Describe this machine after watching its load for *watch_s* seconds."""
    watch = LoadWatch()
    time.sleep(watch_s)
    return Machine(
        cpu_model=cpu_model(),
        cores=os.cpu_count() or 1,
        versions=library_versions(),
        git_revision=git_revision(),
        others_at_start=watch.others(),
    )


def load_warning(others: float | None, cores: int) -> str | None:
    """Return what to say when *others* use a large share of the cores; None when they do not."""
    if others is None or others <= BUSY_SHARE:
        return None
    return f"others use {others:.0%} of the {counted(cores, 'core')}: expect long times and a wide spread"


def cpu_ticks() -> CpuTicks | None:
    """Return the kernel's account of all cores, ours taken off; None where it keeps none that we know."""
    try:
        ticks = parse_ticks(_STAT.read_text())
    except OSError:
        return None
    own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
    return CpuTicks(ticks.busy - round(own), ticks.total)


def parse_ticks(stat: str) -> CpuTicks:
    """Read the first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice."""
    ticks = [int(word) for word in stat.splitlines()[0].split()[1:9]]  # guest time is part of user time
    idle = ticks[3] + ticks[4]
    return CpuTicks(sum(ticks) - idle, sum(ticks))


def busy_share(before: CpuTicks | None, after: CpuTicks | None) -> float | None:
    """Return the share of all cores in use between two looks, at least 0; None when no tick has passed."""
    if before is None or after is None or after.total <= before.total:
        return None
    return max(0.0, (after.busy - before.busy) / (after.total - before.total))
