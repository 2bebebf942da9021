"""The interval in which the bench of the feeds tells its median."""

from math import comb

import pytest

from vertumnus_console.bench_feeds import interval


@pytest.mark.parametrize(("count", "place"), [(1, 0), (5, 0), (7, 0), (9, 1), (11, 1), (12, 2), (21, 5)])
def test_the_interval_is_the_innermost_that_is_sure(count: int, place: int) -> None:
    """Between the (place + 1)-th value and that from the top; one further in would be less sure than 95 %."""
    told = interval(list(range(count))[::-1])
    assert told == ((count - 1) / 2, place, count - 1 - place)

    def unsure(inside: int) -> float:
        return 2 * sum(comb(count, below) for below in range(inside + 1)) / 2**count

    assert count < 6 or unsure(place) <= 0.05 < unsure(place + 1)
