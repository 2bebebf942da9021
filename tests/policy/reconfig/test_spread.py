"""The same requests predicted on another composition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time
from tests.support.reconfig import LATTICE, SPAN_NS, a_composition, a_model, tilings
from vertumnus.domain.cluster import Composition
from vertumnus.domain.errors import ConfigError
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.sizes import SizeClass
from vertumnus.policy.reconfig.spread import spread

ONE = Capacity({1: 1.0, 2: 1.0, 4: 1.0})
MODEL = a_model(d1=(0, 10), d2=(80, 4))
"""A prompt of 100: 1000 ns at degree 1, 480 at 2. A prompt of 10: 100 ns at degree 1, 120 at 2."""


def test_one_degree_by_hand() -> None:
    """Two CP1 with kappa 0.5 in 2000 ns: a prompt of 100 and five of 10 are 1500 of 2000 ns."""
    got = spread(
        [SizeClass(1, 100, 0), SizeClass(5, 10, 0)],
        2_000,
        a_composition("0x1", "1x1"),
        Capacity({1: 0.5}),
        MODEL,
    )
    assert got.demand_by_degree_ns == {1: 1500}
    assert got.utilisation == 0.75


def test_two_degrees_by_hand() -> None:
    """CP1 + CP2 in 1000 ns: the long prompt and x short ones at degree 2 balance where 480 + 120 x =
    500 - 100 x, so x = 1/11 and both are 27/55 full.
    """
    got = spread([SizeClass(5, 10, 0), SizeClass(1, 100, 0)], 1_000, a_composition("0x2", "2x1"), ONE, MODEL)
    assert got.utilisation == pytest.approx(27 / 55)
    assert got.demand_by_degree_ns == {1: 491, 2: 491}
    assert got.demand_ns == 982


def test_seconds_at_two_degrees_are_not_one_currency() -> None:
    """The long prompt costs 1000 ns on two CP1 of 2000 ns and 480 on one CP2 of 1000: 0.50 against 0.48."""
    long = [SizeClass(1, 100, 0)]
    assert spread(long, 1_000, a_composition("0x1", "1x1"), ONE, MODEL).utilisation == 0.5
    assert spread(long, 1_000, a_composition("0x2"), ONE, MODEL).utilisation == 0.48


def test_nothing_arrived_and_nobody_there() -> None:
    """An empty window leaves any composition idle; an empty composition carries nothing."""
    assert spread([], SPAN_NS, a_composition("0x2"), ONE, MODEL).utilisation == 0.0
    assert spread([SizeClass(1, 1, 0)], SPAN_NS, Composition(()), ONE, MODEL).utilisation == float("inf")


def test_kappa_missing_after_a_move() -> None:
    """A composition with a degree that was never profiled is refused by its name."""
    with pytest.raises(ConfigError, match=r"profile\.capacity\.2: missing"):
        spread([SizeClass(1, 1, 0)], SPAN_NS, a_composition("0x2"), Capacity({1: 1.0}), MODEL)


size_lists = st.lists(
    st.builds(SizeClass, st.integers(1, 50), st.integers(1, 60_000), st.integers(0, 60_000)),
    min_size=1,
    max_size=8,
)
compositions = st.sampled_from([Composition(tiling) for tiling in tilings(LATTICE)])
kappas = st.fixed_dictionaries({degree: st.floats(0.2, 1.0) for degree in (1, 2, 4)}).map(Capacity)


@settings(max_examples=50)
@given(size_lists, compositions, kappas)
def test_the_fullest_degree_sets_the_utilisation(sizes, composition, capacity) -> None:
    """No degree holds more than utilisation * room, one of them just that, and no request is left out."""
    model = a_prefill_time()
    got = spread(sizes, SPAN_NS, composition, capacity, model)
    room = capacity.room(composition, SPAN_NS)
    assert list(got.demand_by_degree_ns) == sorted(room)
    shares = [got.demand_by_degree_ns[degree] / room[degree] for degree in room]
    assert max(shares) == pytest.approx(got.utilisation, rel=1e-6)
    cheapest = sum(n * min(model.predict(d, r, p) for d in room) for n, r, p in sizes)
    dearest = sum(n * max(model.predict(d, r, p) for d in room) for n, r, p in sizes)
    assert cheapest - 2 <= got.demand_ns <= dearest + 2


@settings(max_examples=40)
@given(size_lists, compositions, kappas)
def test_the_utilisation_is_the_least_possible(sizes, composition, capacity) -> None:
    """It is the linear program's optimum with two degrees, and at most 5 % above it with three."""
    optimize = pytest.importorskip("scipy.optimize")
    model, room = a_prefill_time(), capacity.room(composition, SPAN_NS)
    degrees, many = list(room), len(sizes)
    cost = [0.0] * (many * len(degrees)) + [1.0]
    loads, whole = [], []
    for at, degree in enumerate(degrees):
        row = [0.0] * len(cost)
        for i, (n, r, p) in enumerate(sizes):
            row[at * many + i] = n * model.predict(degree, r, p) / room[degree]
        loads.append([*row[:-1], -1.0])
    for i in range(many):
        whole.append([float(j < many * len(degrees) and j % many == i) for j in range(len(cost))])
    best = optimize.linprog(cost, loads, [0.0] * len(degrees), whole, [1.0] * many).fun
    got = spread(sizes, SPAN_NS, composition, capacity, model).utilisation
    slack = 1e-6 if len(degrees) <= 2 else 0.05
    assert best * (1 - 1e-6) <= got <= best * (1 + slack)


@settings(max_examples=50)
@given(size_lists, compositions, kappas, st.integers(2, 5))
def test_utilisation_scales_with_the_load(sizes, composition, capacity, times: int) -> None:
    """The same requests *times* over are *times* as much work."""
    once = spread(sizes, SPAN_NS, composition, capacity, a_prefill_time())
    more = [SizeClass(n * times, r, p) for n, r, p in sizes]
    assert spread(more, SPAN_NS, composition, capacity, a_prefill_time()).utilisation == pytest.approx(
        times * once.utilisation
    )


@settings(max_examples=50)
@given(size_lists, compositions, kappas, st.randoms(use_true_random=False))
def test_the_order_of_the_classes_does_not_matter(sizes, composition, capacity, random) -> None:
    """A shuffled window is the same window, to the nanosecond."""
    once = spread(sizes, SPAN_NS, composition, capacity, a_prefill_time())
    random.shuffle(sizes)
    assert spread(sizes, SPAN_NS, composition, capacity, a_prefill_time()) == once
