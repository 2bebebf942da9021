"""What this machine has left: memory for KV, and cores that others do not use.

Times measured beside other work mean little, so a calibration looks at both before it believes itself.
"""

import os
import resource
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL = 0, 1, 2, 5, 6, 7  # fields of /proc/stat, proc(5)


class CpuReading(NamedTuple):
    """CPU time used since boot, by everybody and by the processes that we asked about."""

    at_s: float
    all_s: float
    ours_s: float


def usable_cores() -> int:
    """Return the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory_bytes() -> int:
    """Return the memory that new processes may still take [bytes].

    The smaller of what the kernel calls available and what is left of the container's limit; where
    neither is told, all of the machine's.
    """
    found = [size for size in (_kernel_bytes_left(), _container_bytes_left()) if size is not None]
    return min(found, default=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def read_cpu(pids: Iterable[int]) -> CpuReading | None:
    """Return a reading that counts *pids* as ours; None where the kernel tells nothing."""
    try:
        machine = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        ours = sum(_process_ticks(pid) for pid in pids)
    except OSError:
        return None
    busy = sum(int(machine[field]) for field in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL))
    return CpuReading(time.monotonic(), busy / _TICKS_PER_S, ours / _TICKS_PER_S)


def others_share(before: CpuReading | None, after: CpuReading | None, cores: int) -> float | None:
    """Return the share of *cores* that others used between two readings; None without readings."""
    if before is None or after is None or after.at_s <= before.at_s:
        return None
    others_s = (after.all_s - before.all_s) - (after.ours_s - before.ours_s)
    return max(0.0, others_s / (cores * (after.at_s - before.at_s)))


class CpuWatch:
    """How much of the machine others use while a run of this process goes."""

    def __init__(self) -> None:
        self._before: CpuReading | None = None

    def start(self) -> None:
        """Count from now on. The processes that this one has started are its own."""
        self._before = _read_own()

    def others_share(self) -> float | None:
        """Return the share of the cores that others have used; None where the system does not tell."""
        return others_share(self._before, _read_own(), usable_cores())


def _read_own() -> CpuReading | None:
    """Return a reading that counts this process and all that it has started, ended or not, as ours."""
    reading = read_cpu(_family(os.getpid()))
    if reading is None:
        return None
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return reading._replace(ours_s=reading.ours_s + ended.ru_utime + ended.ru_stime)


def _family(pid: int) -> list[int]:
    """Return *pid* and the processes below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    family = [pid]
    for member in family:  # it grows under way
        family += children.get(member, [])
    return family


def _kernel_bytes_left() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(kibibytes) << 10 for kibibytes in sizes), None)


def _container_bytes_left() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = (folder / "memory.max").read_text(), (folder / "memory.current").read_text()
    except OSError:
        return None
    return None if limit.strip() == "max" else max(0, int(limit) - int(used))


def _process_ticks(pid: int) -> int:
    # the name, in brackets, may hold spaces; user and system time are fields 14 and 15 of proc(5)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
