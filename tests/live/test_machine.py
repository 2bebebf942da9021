"""How busy others keep this machine: the arithmetic, and that the kernel's numbers can be read."""

import os
import subprocess
import sys

from vertumnus.live.machine import (
    CpuReading,
    CpuWatch,
    _read_own,
    available_memory_bytes,
    others_share,
    read_cpu,
    usable_cores,
)


def test_share_of_others_is_what_is_left_of_all() -> None:
    """Over 10 s on 2 cores, 14 s used in all and 6 s of them ours leave 8 of 20 s: 0.4."""
    before, after = CpuReading(100.0, 50.0, 5.0), CpuReading(110.0, 64.0, 11.0)
    assert others_share(before, after, cores=2) == 0.4


def test_rounding_does_not_make_others_negative() -> None:
    """The kernel counts in ticks, so ours may seem more than all; others are then 0."""
    assert others_share(CpuReading(0.0, 0.0, 0.0), CpuReading(1.0, 0.99, 1.0), cores=2) == 0.0


def test_unknown_stays_unknown() -> None:
    """Without a reading, or without time between two, there is no share."""
    reading = CpuReading(1.0, 1.0, 1.0)
    assert others_share(None, reading, 2) is None
    assert others_share(reading, None, 2) is None
    assert others_share(reading, reading, 2) is None


def test_this_process_is_part_of_the_machine() -> None:
    """A reading counts what a process has used itself among all of the machine's."""
    reading = read_cpu([os.getpid()])
    assert reading is not None
    assert 0.0 < reading.ours_s <= reading.all_s


BUSY = "import time; ended = time.process_time() + 0.3\nwhile time.process_time() < ended: pass"


def test_a_watch_counts_what_this_process_starts_as_its_own() -> None:
    """CPU time of a child that has ended is ours, like that of one that lives."""
    watch = CpuWatch()
    assert watch.others_share() is None
    before = _read_own()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    after = _read_own()
    assert before is not None and after is not None
    assert after.ours_s - before.ours_s > 0.2
    watch.start()
    assert (watch.others_share() or 0.0) >= 0.0


def test_a_process_that_is_gone_gives_no_reading() -> None:
    """When a rank ended meanwhile the shares mean nothing."""
    assert read_cpu([2**22 + 1]) is None  # above Linux's largest process id


def test_there_is_a_machine() -> None:
    """It has cores and some memory."""
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    assert 0 < available_memory_bytes() < 1 << 50
