"""A worker's queue as the policy mirrors it: order, wait, who is behind (D3)."""

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.policy.queue_mirror import QueueMirror


def a_queue(*jobs: tuple[int, int, int]) -> QueueMirror:
    """A queue of (request, priority, service)."""
    queue = QueueMirror()
    for job in jobs:
        queue.insert(*job)
    return queue


def test_the_wait_is_the_work_before() -> None:
    """Services 10, 20 and 40 at priorities 3, 5, 5: at 4 one is before, at 5 all are, at 2 none is."""
    queue = a_queue((0, 5, 20), (1, 3, 10), (2, 5, 40))
    assert queue.ids == [1, 0, 2]
    assert [queue.place(priority) for priority in (2, 3, 4, 5)] == [(0, 3), (10, 2), (10, 2), (70, 0)]


def test_an_empty_queue_delays_nobody() -> None:
    """No wait, nobody behind, also once everybody has left."""
    queue = a_queue((0, 5, 20))
    queue.remove(0, 5)
    assert (queue.place(1), len(queue)) == ((0, 0), 0)


def test_a_job_leaves_from_among_its_equals() -> None:
    """Of three jobs of one priority the one that is named leaves."""
    queue = a_queue((7, 5, 1), (8, 5, 2), (9, 5, 4))
    queue.place(0)
    queue.remove(8, 5)
    assert (queue.ids, queue.place(5)) == ([7, 9], (5, 0))


changes = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 100)), max_size=40)


@given(changes, st.integers(-1, 5))
def test_the_mirror_is_the_sorted_list(steps, priority) -> None:
    """Whatever comes and goes, the order is (priority, order of insertion) and the wait its partial sum."""
    queue, jobs = QueueMirror(), []
    for number, (leaves, at, service) in enumerate(steps):
        if leaves and jobs:
            gone = jobs.pop(number % len(jobs))
            queue.remove(gone[1], gone[0])
        else:
            queue.insert(number, at, service)
            jobs.append((at, number, service))
        jobs.sort(key=lambda job: job[:2])
        before = [job for job in jobs if job[0] <= priority]
        assert queue.ids == [job[1] for job in jobs]
        assert queue.place(priority) == (sum(job[2] for job in before), len(jobs) - len(before))
