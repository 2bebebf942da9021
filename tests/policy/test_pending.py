"""Blocks that placed requests will leave at their workers (D4)."""

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.policy.prefix.pending import PendingBlocks, Promise

KEYS = (1, 2, 3, 4, 5, 6)


def some_pending(*brought: tuple[int, int, tuple[int, ...]]) -> PendingBlocks:
    """Pending blocks of (request, place, keys)."""
    pending = PendingBlocks()
    for each in brought:
        pending.add(*each)
    return pending


def test_a_promise_goes_on_from_what_is_held() -> None:
    """Two blocks held at place 1, two more pending there: four once request 7 has run."""
    pending = some_pending((7, 1, (3, 4)))
    assert pending.promises(KEYS, [0, 2]) == {1: [Promise(4, 7)]}


def test_a_gap_promises_nothing() -> None:
    """Blocks 3 and 4 are of no use to a worker that will lack block 2."""
    assert some_pending((7, 0, (3, 4))).promises(KEYS, [1]) == {}


def test_each_stretch_names_its_first_bringer() -> None:
    """Blocks 1-2 by request 7, then 3-5 by request 8, which shares the first two."""
    pending = some_pending((7, 0, (1, 2)), (8, 0, (1, 2, 3, 4, 5)))
    assert pending.promises(KEYS, [0]) == {0: [Promise(2, 7), Promise(5, 8)]}


def test_the_next_bringer_stands_in() -> None:
    """When the first bringer is gone the second one still brings the block."""
    pending = some_pending((7, 0, (1, 2)), (8, 0, (1, 2, 3)))
    pending.remove(7)
    assert pending.promises(KEYS, [0]) == {0: [Promise(3, 8)]}
    pending.remove(8)
    pending.remove(8)
    assert (pending.promises(KEYS, [0]), len(pending)) == ({}, 0)


def test_places_move_with_the_composition() -> None:
    """After a change of composition the promises are at the worker's new place."""
    pending = some_pending((7, 0, (1,)), (8, 2, (1, 2)))
    pending.recompose({0: 1, 2: 0})
    assert pending.promises(KEYS, [0, 0]) == {0: [Promise(2, 8)], 1: [Promise(1, 7)]}


class Asked(list[int]):
    """What the workers hold, counting who asks for one of them."""

    times = 0

    def __getitem__(self, place):
        self.times += 1
        return super().__getitem__(place)


def test_a_crowd_for_one_prefix_costs_no_more_than_one_request() -> None:
    """A thousand requests wait at two workers that hold the prefix by now: each is asked once a block."""
    pending = PendingBlocks()
    for request in range(1_000):
        pending.add(request, request % 2, KEYS)
    held = Asked([6, 6, 0])
    assert pending.promises(KEYS, held) == {}
    assert held.times == 2 * len(KEYS)


paths = st.integers(0, 6).flatmap(lambda length: st.integers(0, length).map(lambda i: KEYS[i:length]))


@given(
    st.lists(st.tuples(st.integers(0, 2), paths), max_size=12),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_promises_are_the_leading_blocks_held_or_brought(brought, held) -> None:
    """Each place's last promise reaches as far as blocks are held or brought without a gap."""
    pending = some_pending(*((number, place, keys) for number, (place, keys) in enumerate(brought)))
    promises = pending.promises(KEYS, held)
    for place in range(3):
        there = set(KEYS[: held[place]]) | {key for at, keys in brought if at == place for key in keys}
        leading = next((n for n, key in enumerate(KEYS) if key not in there), len(KEYS))
        told = promises.get(place, [])
        assert (told[-1].blocks if told else held[place]) == leading
        for promise in told:
            assert KEYS[promise.blocks - 1] in brought[promise.by][1] and brought[promise.by][0] == place
    for number in range(len(brought)):
        pending.remove(number)
    assert pending.promises(KEYS, held) == {}


@given(
    st.lists(st.tuples(st.integers(0, 2), paths), max_size=12),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
def test_who_goes_leaves_what_the_others_bring(brought, held, chance) -> None:
    """In any order: it is as if those gone had never come, and in the end nothing is kept of them."""
    number = dict(enumerate(brought))
    pending = some_pending(*((request, place, keys) for request, (place, keys) in number.items()))
    for request in chance.sample(range(len(brought)), len(brought)):
        pending.remove(request)
        del number[request]
        others = some_pending(*((left, place, keys) for left, (place, keys) in number.items()))
        assert pending.promises(KEYS, held) == others.promises(KEYS, held)
    assert not pending._bringers
