"""The lattice of CP groups and the compositions laid out on it (sec. 3.1, 6.2, 8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.cluster import Composition, CpGroup, Lattice, covers
from vertumnus.domain.errors import ConfigError

DEGREES = (1, 2, 4, 8)
groups = st.builds(
    lambda place, degree: CpGroup(place * degree, degree), st.integers(0, 9), st.sampled_from(DEGREES)
)


def test_group_by_hand() -> None:
    """Ranks 4..7 at degree 4: ranks, mask, halves, sibling, parent and name as drawn on paper."""
    group = CpGroup(4, 4)
    assert list(group.ranks) == [4, 5, 6, 7]
    assert group.mask == 0b1111_0000
    assert group.halves == (CpGroup(4, 2), CpGroup(6, 2))
    assert group.sibling == CpGroup(0, 4)
    assert group.parent == CpGroup(0, 8)
    assert str(group) == "4x4"


@given(groups)
def test_siblings_are_the_halves_of_their_parent(group: CpGroup) -> None:
    """A group and its sibling are the two halves of one parent, and siblings of each other."""
    assert sorted([group, group.sibling]) == list(group.parent.halves)
    assert group.sibling.parent == group.parent
    assert group.sibling.sibling == group


@given(groups)
def test_halves_partition_the_ranks(group: CpGroup) -> None:
    """The sibling's mask completes the parent's without overlap, and a mask has one bit a rank."""
    assert group.mask & group.sibling.mask == 0
    assert group.mask | group.sibling.mask == group.parent.mask
    assert group.mask == sum(1 << rank for rank in group.ranks)


def test_lattice_by_hand() -> None:
    """Ten GPUs at degrees 2 and 4: every aligned group, by degree, then first rank."""
    assert Lattice(10, (2, 4), 8).groups() == (
        *(CpGroup(first, 2) for first in (0, 2, 4, 6, 8)),
        CpGroup(0, 4),
        CpGroup(4, 4),
    )


@given(st.integers(1, 40), st.sampled_from([1, 2, 4, 8]))
def test_no_group_crosses_a_node(gpus: int, ranks_per_node: int) -> None:
    """Every group of the lattice is aligned, inside the pool and inside one node."""
    degrees = tuple(degree for degree in DEGREES if degree <= ranks_per_node)
    for first, degree in Lattice(gpus, degrees, ranks_per_node).groups():
        assert first % degree == 0
        assert first + degree <= gpus
        assert first // ranks_per_node == (first + degree - 1) // ranks_per_node


@pytest.mark.parametrize(
    ("lattice", "found"),
    [
        (Lattice(0, (1,), 8), "cluster.gpus: found 0, must be at least 1"),
        (Lattice(4, (), 8), "cluster.degrees: found an empty list"),
        (Lattice(4, (2, 1), 8), "cluster.degrees: found [2, 1], must ascend"),
        (Lattice(4, (1, 1), 8), "cluster.degrees: found [1, 1], must ascend"),
        (Lattice(4, (3,), 8), "cluster.degrees: found 3, each degree must be a power of two"),
        (Lattice(4, (0,), 8), "cluster.degrees: found 0, each degree must be a power of two"),
        (Lattice(4, (1,), 6), "cluster.ranks_per_node: found 6, must be a power of two"),
        (Lattice(16, (16,), 8), "cluster.degrees: found 16, a group must fit a node of 8 ranks"),
    ],
)
def test_each_wrong_pool_is_named(lattice: Lattice, found: str) -> None:
    """A pool that cannot be built has exactly one problem, which names key, value and bound."""
    (problem,) = lattice.problems()
    assert problem.startswith(found)


def test_composition_by_hand() -> None:
    """One CP4 and two CP2 on eight GPUs: the largest first, no gaps, named as the paper does."""
    composition = Composition.of_counts({2: 2, 4: 1}, Lattice(8, (2, 4), 8))
    assert composition.workers == (CpGroup(0, 4), CpGroup(4, 2), CpGroup(6, 2))
    assert composition.counts() == {2: 2, 4: 1}
    assert str(composition) == "2 x CP2 + 1 x CP4"


@given(st.dictionaries(st.sampled_from(DEGREES), st.integers(0, 5), min_size=1))
def test_every_count_that_adds_up_can_be_laid_out(counts: dict[int, int]) -> None:
    """Degrees that add up to G cover the G ranks once, on groups of the lattice, in rank order."""
    gpus = sum(degree * count for degree, count in counts.items())
    if gpus == 0:
        return
    lattice = Lattice(gpus, DEGREES, 8)
    composition = Composition.of_counts(counts, lattice)
    assert set(composition.workers) <= set(lattice.groups())
    assert covers(composition.workers, (), gpus)
    assert list(composition.workers) == sorted(composition.workers)
    assert composition.counts() == {degree: n for degree, n in counts.items() if n}


def test_every_problem_of_a_composition_is_told_at_once() -> None:
    """An unsupported degree, a negative count and a wrong sum are three problems of one error."""
    with pytest.raises(ConfigError) as error:
        Composition.of_counts({8: 1, 2: -1}, Lattice(8, (2, 4), 8))
    assert [problem.split(";")[0] for problem in error.value.problems] == [
        "cluster.composition.2: found -1 workers, must be at least 0",
        "cluster.composition.8: degree 8 is not supported here",
        "cluster.composition: the degrees add up to 6 (-1*2 + 1*8), must equal cluster.gpus = 8",
    ]


def test_no_workers_of_an_unsupported_degree_are_no_problem() -> None:
    """A count of 0 asks for nothing, so its degree need not be supported."""
    composition = Composition.of_counts({16: 0, 4: 2}, Lattice(8, (2, 4), 8))
    assert composition.counts() == {4: 2}


def test_an_empty_composition_is_refused() -> None:
    """No workers at all do not add up to G."""
    with pytest.raises(ConfigError, match=r"add up to 0 \(nothing\), must equal cluster.gpus = 2"):
        Composition.of_counts({}, Lattice(2, (1, 2), 8))


@pytest.mark.parametrize(
    ("workers", "out_of_service", "complete"),
    [
        ([CpGroup(0, 2), CpGroup(2, 1)], [3], True),
        ([CpGroup(0, 2)], [2, 3], True),
        ([CpGroup(0, 2), CpGroup(2, 1)], [], False),
        ([CpGroup(0, 2), CpGroup(2, 2)], [3], False),
        ([CpGroup(0, 4), CpGroup(4, 1)], [], False),
    ],
)
def test_covers_counts_every_rank_once(workers, out_of_service, complete) -> None:
    """Of four GPUs none may be missing, counted twice or made up."""
    assert covers(workers, out_of_service, 4) is complete
