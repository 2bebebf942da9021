"""When copies will be over: one at a time out of a worker and into it, corrected by their ends."""

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.link import LinkConfig
from vertumnus.policy.links import Links

A, B, C, D = (CpGroup(first, 2) for first in (0, 2, 4, 6))
MS = 1_000_000


def some_links() -> Links:
    """A block takes 1 ms, and each copy 3 ms before its first byte."""
    return Links(LinkConfig(bytes_per_s=1e6, latency_s=0.003), 1_000)


def test_a_copy_alone_takes_latency_and_bytes() -> None:
    """Five blocks ordered at 10 ms are there at 18 ms."""
    assert some_links().reserve(1, (A,), B, 5, 10 * MS) == 18 * MS


def test_copies_share_a_way_in_one_after_the_other() -> None:
    """Two sources, one destination: the second starts when the first is over."""
    links = some_links()
    assert links.reserve(1, (A,), B, 1, 0) == 4 * MS
    assert links.reserve(2, (C,), B, 1, 0) == 8 * MS
    assert links.in_free(B) == 8 * MS and links.out_free(A) == 4 * MS


def test_copies_share_a_way_out_and_both_directions_are_apart() -> None:
    """A sends twice in a row; what comes into A at the same time waits for nothing."""
    links = some_links()
    assert links.reserve(1, (A,), B, 1, 0) == 4 * MS
    assert links.reserve(2, (A,), C, 1, 0) == 8 * MS
    assert links.reserve(3, (D,), A, 1, 0) == 4 * MS


def test_a_copy_of_two_sources_waits_for_both() -> None:
    """It starts when the slower one is free, and keeps both from then on."""
    links = some_links()
    links.reserve(1, (A,), B, 7, 0)
    assert links.reserve(2, (A, C), D, 1, 0) == 14 * MS
    assert links.out_free(C) == 14 * MS


def test_the_first_free_way_out_is_that_of_the_longest_rest() -> None:
    """A is free at 4 ms and C at 5, so A; who has sent nothing comes before both, the first named of two."""
    links = some_links()
    links.reserve(1, (C,), B, 2, 0)
    links.reserve(2, (A,), D, 1, 0)
    assert links.first_free([C, A]) == A
    assert links.first_free([C, D, A, B]) == D


def test_an_early_end_moves_those_behind_up() -> None:
    """The first is over after 1 ms instead of 4: the second ends at 5 ms, an unrelated one as before."""
    links = some_links()
    links.reserve(1, (A,), B, 1, 0)
    links.reserve(2, (C,), B, 1, 0)
    links.reserve(3, (C,), D, 1, 0)
    links.release(1, 1 * MS)
    assert (links.end_of(2), links.end_of(3)) == (5 * MS, 9 * MS)


def test_a_late_end_moves_those_behind_back() -> None:
    """Over at 10 ms instead of 4: who waited for it ends at 14 ms."""
    links = some_links()
    links.reserve(1, (A,), B, 1, 0)
    links.reserve(2, (C,), B, 1, 0)
    links.release(1, 10 * MS)
    assert links.end_of(2) == 14 * MS


def test_a_link_that_is_free_starts_at_once() -> None:
    """Long after its last copy a link delays nothing."""
    links = some_links()
    links.reserve(1, (A,), B, 1, 0)
    links.release(1, 4 * MS)
    assert links.reserve(2, (A,), B, 1, 50 * MS) == 54 * MS


orders = st.lists(
    st.tuples(
        st.lists(st.sampled_from([A, B, C, D]), min_size=1, max_size=2, unique=True),
        st.sampled_from([A, B, C, D]),
        st.integers(1, 9),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=20,
)


@given(orders)
def test_copies_of_one_link_never_overlap(copies) -> None:
    """In each direction of each worker, predicted times of copies follow one another."""
    links, now, spans = some_links(), 0, []
    for number, (sources, destination, blocks, pause, _) in enumerate(copies):
        now += pause * MS
        end = links.reserve(number, sources, destination, blocks, now)
        spans.append(
            (end - links.copy_ns(blocks), end, {("in", destination), *(("out", s) for s in sources)})
        )
    for place, (start, _, used) in enumerate(spans):
        assert all(start >= end for _, end, others in spans[:place] if used & others)


@given(orders)
def test_ends_leave_no_reservation(copies) -> None:
    """Whatever ends when: with the last copy over every link is free."""
    links, now, under_way = some_links(), 0, []
    for number, (sources, destination, blocks, pause, ends) in enumerate(copies):
        now += pause * MS
        links.reserve(number, sources, destination, blocks, now)
        under_way.append(number)
        if ends:
            links.release(under_way.pop(blocks % len(under_way)), now)
            assert all(links.end_of(copy) >= now for copy in under_way)
    for copy in under_way:
        links.release(copy, now)
    assert len(links) == 0
    assert all(links.in_free(worker) <= now and links.out_free(worker) <= now for worker in (A, B, C, D))
