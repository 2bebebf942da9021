"""Another job is started only where it will have the memory that jobs were seen to need."""

import os

from vertumnus.sweep.memory import KEPT_FREE, Memory, peak_bytes

GIB = 1 << 30


def memory(free: int) -> Memory:
    """Return a memory with *free* bytes above what is kept free, and jobs that need 1 GiB."""
    return Memory(lambda: free + KEPT_FREE, first_guess=GIB)


def test_the_first_job_always_fits() -> None:
    """However little there is: there is no way to run it with less."""
    assert memory(0).has_room([])


def test_running_jobs_are_left_room_to_grow() -> None:
    """Two jobs at a quarter of their 1 GiB want 1.5 GiB more: a third needs 2.5 GiB to be free."""
    assert not memory(5 * GIB // 2 - 1).has_room([GIB // 4, GIB // 4])
    assert memory(5 * GIB // 2).has_room([GIB // 4, GIB // 4])


def test_the_largest_job_seen_is_the_measure() -> None:
    """After a job of 3 GiB the next is taken to need as much, though that one has ended."""
    seen = memory(2 * GIB)
    assert seen.has_room([GIB])
    assert not seen.has_room([3 * GIB])
    assert not seen.has_room([GIB])


def test_the_peak_of_a_process_is_what_the_kernel_says() -> None:
    """This process has some; one that is not there has none."""
    assert 1 << 20 < peak_bytes(os.getpid()) < 1 << 40
    assert peak_bytes(2**30) == 0
