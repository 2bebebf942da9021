"""What the bench of the feeds makes of the CPU times that two runs tell."""

from math import comb

import pytest

from vertumnus_console.bench_feeds import Leg, compared, order
from vertumnus_console.bench_processes import Mark
from vertumnus_console.intervals import interval


@pytest.mark.parametrize(("count", "place"), [(1, 0), (5, 0), (7, 0), (9, 1), (11, 1), (12, 2), (21, 5)])
def test_the_interval_is_the_innermost_that_is_sure(count: int, place: int) -> None:
    """Between the (place + 1)-th value and that from the top; one further in would be less sure than 95 %."""
    told = interval(list(range(count))[::-1])
    assert told == ((count - 1) / 2, place, count - 1 - place)

    def unsure(inside: int) -> float:
        return 2 * sum(comb(count, below) for below in range(inside + 1)) / 2**count

    assert count < 6 or unsure(place) <= 0.05 < unsure(place + 1)


def test_what_differs_for_good_or_by_the_requests_is_no_cost() -> None:
    """The second run takes 1.2 times as long, each leg's requests differ, feeds cost a tenth: a tenth."""
    followed = order(8)
    assert followed == [0, 1, 1, 0, 0, 1, 1, 0]
    legs = [Leg(float(place), place + 1.0, run) for place, run in enumerate(followed)]
    runs = [[Mark(0.0, 0, 5.0)], [Mark(-0.5, 0, 3.0)]]
    for place, with_feeds in enumerate(followed):
        for run, speed in ((0, 1.0), (1, 1.2)):
            took = speed * (1.0 + place % 3) * (1.1 if run == with_feeds else 1.0)
            before = runs[run][-1]
            runs[run].append(Mark(before.wall_s + 1.0, before.ended + 50, before.cpu_s + took))
    told = compared(3, legs, *runs)
    assert told.ratios == pytest.approx([1.1] * 4)
    assert told.alike == pytest.approx([1.0] * 3)
    assert told.requests == 400
