"""Places at the decode side: fewest tokens first, first come, first served (D8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.errors import InvariantError
from vertumnus.workers.config import DecodeConfig
from vertumnus.workers.decode_pool import DecodePool


def a_pool(ranks: int = 2, slots: int = 2, tokens: int = 100) -> DecodePool:
    """A small pool."""
    return DecodePool(DecodeConfig(ranks=ranks, slots_per_rank=slots, tokens_per_rank=tokens))


def test_the_rank_with_fewest_tokens_wins_then_the_lowest() -> None:
    """30 on rank 0, 50 on rank 1; then 0 has fewer; then both have 50 and 0 wins."""
    pool = a_pool(slots=9)
    assert [pool.admit(number, tokens) for number, tokens in enumerate([30, 50, 20, 10])] == [0, 1, 0, 0]


@pytest.mark.parametrize(("slots", "tokens"), [(1, 100), (9, 60)])
def test_slots_and_tokens_both_bound_a_rank(slots: int, tokens: int) -> None:
    """A sequence waits when the rank has no slot, or no tokens, left for it."""
    pool = a_pool(ranks=1, slots=slots, tokens=tokens)
    assert [pool.admit(0, 40), pool.admit(1, 40)] == [0, None]
    pool.release(0, 0)
    assert pool.admit_waiting() == [(1, 0)]


def test_a_rank_can_be_filled_exactly() -> None:
    """Tokens up to the capacity fit, one more does not."""
    assert a_pool(ranks=1, tokens=60).admit(0, 60) == 0
    assert a_pool(ranks=1, tokens=60).admit(0, 61) is None


def test_nobody_overtakes_in_the_line() -> None:
    """A small sequence waits behind a large one, and both go when there is room for both."""
    pool = a_pool(ranks=1, slots=3)
    assert [pool.admit(0, 90), pool.admit(1, 50), pool.admit(2, 5)] == [0, None, None]
    assert pool.admit_waiting() == []
    pool.release(0, 0)
    assert pool.admit_waiting() == [(1, 0), (2, 0)]


def test_withdrawing_takes_a_sequence_out_of_the_line_once() -> None:
    """Only one that waits can be withdrawn."""
    pool = a_pool(ranks=1, slots=1)
    pool.admit(0, 5), pool.admit(1, 5)
    assert (pool.withdraw(0), pool.withdraw(1), pool.withdraw(1)) == (False, True, False)
    pool.release(0, 0)
    assert pool.admit_waiting() == []


def test_a_lost_rank_takes_nobody_any_more() -> None:
    """Its sequences are told, in order of admission, and the pool is gone with its last rank."""
    pool = a_pool(slots=9)
    for number in range(4):
        pool.admit(number, 10)
    assert pool.lose(0) == [0, 2]
    assert pool.in_use == 4
    for number in (0, 2):
        pool.release(0, number)
    assert (pool.in_use, pool.is_gone) == (2, False)
    assert pool.admit(4, 10) == 1
    pool.lose(1)
    assert pool.is_gone


def test_the_audit_notices_one_who_waits_beside_free_room() -> None:
    """After a release somebody must ask who can be admitted; forgetting it is found."""
    pool = a_pool(ranks=1, slots=1)
    pool.admit(0, 5), pool.admit(1, 5)
    pool.check()
    pool.release(0, 0)
    with pytest.raises(InvariantError, match="a hand-off waits although a decode rank has room"):
        pool.check()


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=60))
def test_bounds_hold_and_nobody_is_lost(steps: list[tuple[bool, int]]) -> None:
    """Whoever comes and goes: slots and tokens are never exceeded, admission is in order, all get out."""
    pool = a_pool(ranks=2, slots=2, tokens=60)
    sizes: dict[int, int] = {}
    placed: dict[int, int] = {}
    order: list[int] = []
    for number, (arrives, size) in enumerate(steps):
        if arrives:
            sizes[number] = size
            rank = pool.admit(number, size)
            admitted = [] if rank is None else [(number, rank)]
        elif placed:
            leaver = next(iter(placed))
            pool.release(placed.pop(leaver), leaver)
            admitted = pool.admit_waiting()
        else:
            continue
        placed.update(admitted)
        order += [request_id for request_id, _ in admitted]
        pool.check()
        assert pool.in_use == len(placed)
        for rank in range(2):
            here = [sizes[request_id] for request_id, on in placed.items() if on == rank]
            assert len(here) <= 2
            assert sum(here) <= 60
    assert order == sorted(sizes)[: len(order)]
