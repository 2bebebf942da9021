"""What is delivered at a time: from a fixed origin, in order, and woken up for."""

import select
import threading

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.facts import TimerFired
from vertumnus.live.agenda import Agenda


def timer(number: int) -> TimerFired:
    """A fact that can be told from others."""
    return TimerFired(0, f"t{number}", number)


@given(st.lists(st.integers(0, 50), max_size=40))
def test_scheduled_facts_come_by_time_then_order(times: list[int]) -> None:
    """Earlier times come first, equal times in the order of scheduling, none before its time."""
    agenda = Agenda()
    for number, at_ns in enumerate(times):
        agenda.schedule(timer(number), at_ns)
    taken = []
    for now in range(51):
        while (fact := agenda.take(now)) is not None:
            assert isinstance(fact, TimerFired)
            assert times[fact.due_ns] == now
            taken.append(fact.due_ns)
    assert taken == sorted(range(len(times)), key=lambda number: times[number])
    assert not agenda
    agenda.close()


def test_late_deliveries_do_not_add_up() -> None:
    """10,000 sends, each looked for too late, are still due at their own times (case 10 of the field)."""
    agenda, period_ns, late_ns = Agenda(), 1_000_000, 999_999
    for number in range(10_000):
        agenda.schedule(timer(number), number * period_ns)
    now = 0
    for number in range(10_000):
        now += agenda.wait_ns(now, 10 * period_ns)
        assert now == number * period_ns
        assert agenda.take(now + late_ns) == timer(number)
    agenda.close()


def test_what_is_due_is_not_waited_for() -> None:
    """The wait is that to the next due time, nothing when it has come, the longest when there is none."""
    agenda = Agenda()
    assert agenda.wait_ns(0, 200) == 200
    agenda.schedule(timer(0), 50)
    assert [agenda.wait_ns(now, 200) for now in (0, 49, 50, 51)] == [50, 1, 0, 0]
    agenda.schedule(timer(1), 20)
    assert agenda.wait_ns(0, 10) == 10
    agenda.close()


def test_post_wakes_a_sleeper() -> None:
    """A fact posted from another thread makes the descriptor readable, until it has been taken."""
    agenda = Agenda()
    assert select.select([agenda.wake_fd], [], [], 0)[0] == []
    poster = threading.Thread(target=agenda.post, args=(timer(1),))
    poster.start()
    assert select.select([agenda.wake_fd], [], [], 30)[0] == [agenda.wake_fd]
    poster.join()
    assert agenda.take(0) == timer(1)
    assert agenda.take(0) is None
    assert select.select([agenda.wake_fd], [], [], 0)[0] == []
    agenda.close()


def test_no_post_is_slept_over() -> None:
    """Whenever a fact is posted, either it is seen now or the descriptor is readable afterwards."""
    agenda, posts = Agenda(), 2_000
    poster = threading.Thread(target=lambda: [agenda.post(timer(number)) for number in range(posts)])
    poster.start()
    seen = 0
    while seen < posts:
        if agenda.take(0) is None:
            assert select.select([agenda.wake_fd], [], [], 30)[0], "slept over a post"
        else:
            seen += 1
    poster.join()
    agenda.close()


def test_post_after_close_goes_nowhere() -> None:
    """A thread that posts too late neither fails nor writes into someone else's descriptor."""
    agenda = Agenda()
    agenda.close()
    agenda.post(timer(1))
    agenda.close()
