"""Recent arrivals as the near future: old prefixes are hit again, new blocks are new again, nothing else."""

from tests.support.builders import a_request
from vertumnus.domain.units import SECOND
from vertumnus.policy.recent import FEWEST, KEPT_NS, Arrival, RecentArrivals, Recurrence, as_next


def arrivals(*told: tuple[tuple[int, ...], int]) -> list[Arrival]:
    """One arrival a second with these keys, of which the first so many were known."""
    return [
        Arrival(a_request(place, place * SECOND, 16 * len(keys) + 1, block_keys=keys), known)
        for place, (keys, known) in enumerate(told)
    ]


def test_blocks_that_were_new_are_new_again() -> None:
    """Worked by hand: 1, 2 are old; 3, 4 were new to the first and known to the second; 5 was new to it."""
    told = arrivals(((1, 2, 3, 4), 2), ((1, 2, 3, 4, 5), 4), ((1, 2), 2), ((6,), 0))
    again = as_next(told, 10 * SECOND, Recurrence(10 * SECOND))
    assert [request.block_keys for request in again] == [(1, 2, -1, -2), (1, 2, -1, -2, -3), (1, 2), (-4,)]
    assert [request.request_id for request in again] == [-1, -2, -3, -4]
    assert [request.arrival_ns for request in again] == [10 * SECOND, 11 * SECOND, 12 * SECOND, 13 * SECOND]


def test_two_that_missed_the_same_block_share_it_again() -> None:
    """Both came before the block was there: it gets one new key, so that the second may hit the first."""
    again = as_next(arrivals(((7, 8), 0), ((7, 8), 0)), 0, Recurrence(0))
    assert [request.block_keys for request in again] == [(-1, -2), (-1, -2)]


def test_a_higher_load_comes_faster() -> None:
    """Arrivals 0, 1 and 2 s into a span of 4 s before 10 s come after 0, 0.8 and 1.6 s at 1.25 times."""
    told = [Arrival(a_request(n, (6 + n) * SECOND), 0) for n in range(3)]
    again = as_next(told, 10 * SECOND, Recurrence(4 * SECOND, 1, 1.25))
    assert [request.arrival_ns for request in again] == [10 * SECOND, 10_800_000_000, 11_600_000_000]


def test_a_past_that_is_repeated_is_new_each_time() -> None:
    """Twice the arrivals 2 and 3 s into 4 s: after 2, 3, 6, 7 s, new blocks new again, the old one old."""
    told = arrivals(((0,), 0), ((0,), 0), ((1, 2), 1), ((2,), 0))[2:]
    again = as_next(told, 4 * SECOND, Recurrence(4 * SECOND, 2))
    assert [request.arrival_ns // SECOND for request in again] == [6, 7, 10, 11]
    assert [request.request_id for request in again] == [-1, -2, -3, -4]
    assert [request.block_keys for request in again] == [(1, -1), (-1,), (1, -2), (-2,)]


def test_unknown_content_stays_unknown() -> None:
    """A request without keys has none in the forecast either."""
    request = a_request(0, block_keys=())
    told = Arrival(type(request)(0, 0, 40, 4, None, 5, 6), 0)
    (again,) = as_next([told], 0, Recurrence(0))
    assert (again.block_keys, again.ttft_target_ns, again.tpot_target_ns) == (None, 5, 6)


def test_only_the_last_while_is_kept() -> None:
    """What is asked for is there, the later bound included; what is older than the bound goes, in bulk."""
    recent = RecentArrivals()
    step = KEPT_NS // FEWEST
    for number in range(5 * FEWEST):
        recent.note(a_request(number, number * step), 0)
        assert len(recent) <= 2 * FEWEST + 1
    last = (5 * FEWEST - 1) * step
    got = recent.between(last - 3 * step, last)
    assert [each.request.arrival_ns for each in got] == [last - 2 * step, last - step, last]
    assert len(recent.between(last - KEPT_NS, last)) >= FEWEST
