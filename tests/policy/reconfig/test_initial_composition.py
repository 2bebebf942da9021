"""The composition to start from, out of a historical slice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time
from tests.support.reconfig import a_composition, a_model
from vertumnus.domain.cluster import Composition, Lattice, covers
from vertumnus.domain.errors import ConfigError
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.initial import InitialChoice, InitialRule
from vertumnus.policy.reconfig.sizes import SizeClass

LATTICE = Lattice(8, (1, 2), 8)
MODEL = a_model(d1=(0, 10), d2=(100, 5))
"""lambda 0: degree 2 is the faster one above 20 tokens. R = 10: 100 and 150 ns; R = 100: 1000 and 600."""
ONE = Capacity({1: 1.0, 2: 1.0})


def start(
    sizes: list[SizeClass], span_ns: int, capacity: Capacity = ONE, weight: float = 0.0
) -> InitialChoice:
    """The choice for *sizes* on eight GPUs."""
    return InitialRule(sizes, span_ns, LATTICE, capacity, MODEL, weight).choose()


def test_short_prompts_start_small() -> None:
    """Nobody wants degree 2: no composition with a CP2 is suitable, however idle the pool."""
    choice = start([SizeClass(3, 10, 0)], 10**6)
    assert choice.wanted_workers == {2: 0.0}
    assert choice.composition.counts() == {1: 8}


def test_long_prompts_start_large() -> None:
    """All want degree 2 and one each 1000 ns leaves four CP2 nearly idle: 600 / 4000."""
    choice = start([SizeClass(1, 100, 0)], 1_000)
    assert choice.wanted_workers == {2: 4.0}
    assert choice.composition == a_composition("0x2", "2x2", "4x2", "6x2")
    assert choice.utilisation == pytest.approx(0.15)


def test_the_mixture_by_hand() -> None:
    """24 short (24 * 100 ns at degree 1) and two long (2 * 2 * 600 at degree 2): half the GPU time wants
    degree 2, worth 2 of the 4 possible workers.
    """
    choice = start([SizeClass(24, 10, 0), SizeClass(2, 100, 0)], 10_000)
    assert choice.wanted_workers == {2: 2.0}
    assert choice.composition.counts() == {1: 4, 2: 2}


def test_capacity_may_ask_for_fewer_large_workers() -> None:
    """The same mixture in 560 ns: with two CP2 the pool is more than full, with one it is not; below the
    mixture's share there is no fewer than one.
    """
    sizes = [SizeClass(24, 10, 0), SizeClass(2, 100, 0)]
    by_load = {span: start(sizes, span).composition.counts() for span in (700, 590, 100)}
    assert by_load == {700: {1: 4, 2: 2}, 590: {1: 6, 2: 1}, 100: {1: 6, 2: 1}}


def test_none_has_enough() -> None:
    """Hopeless load: the largest total kappa among the suitable, said by a utilisation above 1."""
    sizes = [SizeClass(24, 10, 0), SizeClass(2, 100, 0)]
    small = start(sizes, 10, Capacity({1: 1.0, 2: 1.0}))
    large = start(sizes, 10, Capacity({1: 0.4, 2: 1.0}))
    assert (small.composition.counts(), large.composition.counts()) == ({1: 6, 2: 1}, {1: 4, 2: 2})
    assert small.utilisation > 1.0 and large.utilisation > 1.0


def test_half_a_large_worker_is_a_whole_one() -> None:
    """Eight short prompts (8 * 100 ns at degree 1) and a long one (4 * 200 at degree 4) on four GPUs: half
    the pool wants degree 4, and the one worker that this asks for takes all of it.
    """
    model = a_model(d1=(0, 10), d2=(1_000, 10), d4=(100, 1))
    sizes = [SizeClass(8, 10, 0), SizeClass(1, 100, 0)]
    lattice = Lattice(4, (1, 2, 4), 4)
    kappa = Capacity({1: 1.0, 2: 1.0, 4: 1.0})
    choice = InitialRule(sizes, 10**6, lattice, kappa, model, 0.0).choose()
    assert choice.wanted_workers == {2: 1.0, 4: 0.5}
    assert choice.composition == a_composition("0x4")


def test_gpu_time_may_be_dear() -> None:
    """At lambda 1 a prompt of 100 costs 600 + (1200 - 1000) = 800 at degree 2 against 1000; at lambda 3 it
    costs 1200, and nobody wants degree 2.
    """
    assert start([SizeClass(1, 100, 0)], 10**6, weight=1.0).wanted_workers == {2: 4.0}
    assert start([SizeClass(1, 100, 0)], 10**6, weight=3.0).wanted_workers == {2: 0.0}


@pytest.mark.parametrize(
    ("sizes", "lattice", "capacity", "problem"),
    [
        ([], LATTICE, ONE, "initial: the slice holds no request"),
        ([SizeClass(1, 1, 0)], LATTICE, Capacity({1: 1.0}), "profile.capacity.2: missing"),
        ([SizeClass(1, 1, 0)], Lattice(7, (2,), 8), ONE, "cluster.gpus: found 7, no workers of degrees [2]"),
    ],
)
def test_each_wrong_input_is_named(sizes, lattice, capacity, problem) -> None:
    """An empty slice, a missing kappa, a pool that no composition fills."""
    with pytest.raises(ConfigError) as caught:
        InitialRule(sizes, 1_000, lattice, capacity, MODEL, 0.0)
    assert str(caught.value).startswith(problem)


@settings(max_examples=40)
@given(
    st.lists(
        st.builds(SizeClass, st.integers(1, 100), st.integers(1, 60_000), st.integers(0, 60_000)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([Lattice(8, (1, 2, 4, 8), 8), Lattice(12, (4, 8), 8), Lattice(7, (1, 2, 4), 8)]),
    st.floats(0.0, 1.0),
)
def test_there_is_always_a_start(sizes, lattice, weight) -> None:
    """Every slice gets a composition that covers the pool; with ten times the time it has no fewer of the
    largest workers where both have enough capacity.
    """
    model, capacity = a_prefill_time((1, 2, 4, 8)), Capacity({1: 0.8, 2: 0.8, 4: 0.8, 8: 0.8})
    rules = [InitialRule(sizes, span, lattice, capacity, model, weight) for span in (10**10, 10**11)]
    once, slower = (rule.choose() for rule in rules)
    for choice in (once, slower):
        assert isinstance(choice.composition, Composition)
        assert covers(choice.composition.workers, (), lattice.gpus)
    if once.utilisation <= 1.0:
        largest = lattice.degrees[-1]
        assert slower.composition.counts().get(largest, 0) >= once.composition.counts().get(largest, 0)
    for rule, choice in zip(rules, (once, slower), strict=True):
        ranking = rule.ranking(most=200)
        assert ranking is not None and ranking[0] == choice.candidate


def test_the_ranking_says_why() -> None:
    """24 short and two long in 590 ns, as above: 6 + 1 carries it, 4 + 2 would not, 8 + 0 lacks a large
    worker, more than two large ones are more than the lengths are worth.
    """
    rule = InitialRule([SizeClass(24, 10, 0), SizeClass(2, 100, 0)], 590, LATTICE, ONE, MODEL, 0.0)
    ranking = rule.ranking(most=5)
    assert ranking is not None
    assert [candidate.composition.counts() for candidate in ranking] == [
        {1: 6, 2: 1},
        {1: 4, 2: 2},
        {1: 8},
        {1: 2, 2: 3},
        {2: 4},
    ]
    assert [candidate.is_enough for candidate in ranking] == [True, False, False, False, False]
    assert ranking[2].unsuitable == "no worker of CP2 or more, the lengths are worth 2.0"
    assert ranking[3].unsuitable == "6 GPUs at CP2 or more, the lengths are worth 4"
    assert (ranking[0].capacity, ranking[1].unsuitable) == (7.0, "")
    assert rule.ranking(most=4) is None


def test_a_prompt_that_only_a_large_worker_holds_wants_one() -> None:
    """All short, so nobody wants degree 2 for speed; the longest prompt fits no single rank's memory."""
    rule = InitialRule([SizeClass(3, 10, 0)], 10**6, LATTICE, ONE, MODEL, 0.0, longest_needs=2)
    assert rule.choose().composition.counts() == {1: 6, 2: 1}
