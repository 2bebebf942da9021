"""The check of ranks' memory: silent while all agree, and it names rank, block and what each side says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.test_prefix_operations import PrefixRig
from tests.serving.test_transitions import shapes, wishes
from tests.support.builders import BLOCK_TOKENS
from tests.support.model_memory import ModelMemory
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import RequestEnded, TransferFinished
from vertumnus.domain.units import BlockKey, Rank, SlotId
from vertumnus.run.memory_check import MemoryCheck
from vertumnus.run.pool import Pool
from vertumnus.serving.loop import Loop

LENGTHS = [(n % 3, 2 + (n * 7) % 8, 1 + n % 13) for n in range(60)]
"""Requests of three prefixes."""


class CheckedRig(PrefixRig):
    """A pool with a memory, compared after every event."""

    def __init__(self, seed: int, actions=(), **settings) -> None:
        super().__init__(seed, actions, **settings)
        self.memory = ModelMemory(self.engine, BLOCK_TOKENS)
        pool = Pool(self.fleet, self.control)
        self.check = MemoryCheck(
            self.memory, self.memory.digests, pool, BLOCK_TOKENS, self.cluster.blocks_per_rank
        )
        self.loop = Loop(self.check, self.fleet, self.control, self.check.noting(self.record))

    def audit(self) -> None:
        super().audit()
        self.check.after_event()
        self.check.compare()

    def held(self) -> list[tuple[Rank, BlockKey, SlotId]]:
        """Every block that a worker holds: rank, key, slot."""
        return [
            (slot // self.cluster.blocks_per_rank, key, slot)
            for worker in self.fleet.workers.values()
            for key, slot in worker.cache.resident_slots()
        ]


def a_served_rig() -> CheckedRig:
    """Six workers that hold three prefixes, some of them copied."""
    rig = CheckedRig(1, composition={2: 2, 1: 4})
    rig.run(LENGTHS)
    assert rig.bodies(TransferFinished)
    return rig


@settings(max_examples=20)
@given(shapes, wishes, st.integers(0, 10_000))
def test_random_operations_keep_memory_and_index_together(lengths, actions, seed) -> None:
    """Copies that tear, moves, reclaims, evictions and losses: after every event all three agree."""
    rig = CheckedRig(seed, actions, step_error=0.02, handoff_error=0.2, cancel=0.1, lost_ack=0.03)
    rig.engine.lose_rank(seed % 8, seed * 40_000)
    rig.run(lengths)
    assert len(rig.bodies(RequestEnded)) == len(lengths)


def test_a_spoilt_block_is_named() -> None:
    """Other bytes in a rank's slot: rank, block, slot, what is there and what was written."""
    rig = a_served_rig()
    rank, key, slot = rig.held()[3]
    written, rig.memory.slots[slot] = rig.memory.slots[slot], b"spoilt"
    with pytest.raises(InvariantError) as caught:
        rig.check.compare()
    assert str(caught.value).splitlines()[1:] == [
        f"rank {rank}, block {key}, slot {slot}: the rank has {b'spoilt'.hex()}, the step that computed it "
        f"wrote {written.hex()}"
    ]


def test_a_copy_that_brought_nothing_is_found() -> None:
    """A copy that is told done while its slots hold something else stops the run at once."""
    rig = CheckedRig(1, composition={2: 2, 1: 4})
    rig.memory.lost_copies = 1
    with pytest.raises(InvariantError, match="the step that computed it wrote"):
        rig.run(LENGTHS)
    assert len(rig.bodies(TransferFinished)) == 1


def test_an_index_that_says_too_much_or_too_little_is_found() -> None:
    """A holder that was forgotten, and one that is none, are told as what index and worker say."""
    rig = a_served_rig()
    rank, key, slot = rig.held()[0]
    rig.control.index.evict(rank, [key])
    other = next(r for r in range(8) if not rig.control.index.node(key).owners >> r & 1 and r != rank)
    rig.control.index.install((key,), 0, [other])
    with pytest.raises(InvariantError) as caught:
        rig.check.compare()
    assert sorted(str(caught.value).splitlines()[1:]) == sorted(
        [
            f"rank {rank}, block {key}: its worker holds it in slot {slot}, the index does not say so",
            f"rank {other}, block {key}: the index says that it is there, its worker does not hold it",
        ]
    )


def test_slots_that_were_mixed_up_are_found() -> None:
    """Two blocks whose slots a worker took for one another are told with what was written where."""
    rig = a_served_rig()
    blocks = next(w.cache._resident for w in rig.fleet.workers.values() if len(w.cache._resident) > 1)
    (first, a), (second, b) = list(blocks.items())[:2]
    a.slot, b.slot = b.slot, a.slot
    with pytest.raises(InvariantError, match=f"last is block {first}") as caught:
        rig.check.compare()
    assert f"last is block {second}" in str(caught.value)


def test_many_differences_are_counted() -> None:
    """Ten are told one by one, the rest as a number."""
    rig = a_served_rig()
    held = rig.held()
    rig.memory.slots.clear()
    with pytest.raises(InvariantError, match=rf"\.\.\. and {len(held) - 10} more$"):
        rig.check.compare()
