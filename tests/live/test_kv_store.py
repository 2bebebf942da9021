"""Block slots: what is written is what is read, by the owner and by peers through the map."""

from pathlib import Path

import pytest
import torch

from vertumnus.domain.errors import ConfigError
from vertumnus.live import kv_store
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.kv_store import (
    KvLayout,
    KvPart,
    KvStore,
    allocate,
    join_blocks,
    shared_directory,
)

CPU = torch.device("cpu")
LAYOUT = KvLayout(2, (KvPart("k", 2, 4), KvPart("v", 2, 4)), torch.float32)
LATENT = KvLayout(3, (KvPart("latent", 1, 5),), torch.bfloat16)
SLOTS, BLOCK_TOKENS = 6, 4


def numbered(tokens: int, first: int) -> torch.Tensor:
    """Return rows [tokens, 16] of distinct numbers."""
    return torch.arange(first, first + tokens * LAYOUT.width, dtype=torch.float32).view(tokens, LAYOUT.width)


def test_rows_split_into_keys_and_values() -> None:
    """A row is the keys of all KV heads, then the values; splitting makes views."""
    row = numbered(1, 0)
    k_TKD, v_TKD = LAYOUT.split(row)
    assert k_TKD.tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7]]]
    assert v_TKD.tolist() == [[[8, 9, 10, 11], [12, 13, 14, 15]]]
    v_TKD.zero_()
    assert row[0, 8:].tolist() == [0] * 8


def test_sizes_follow_the_model() -> None:
    """A 512-token block of the tiny model is 1 MiB; latent attention with its one part fits, too."""
    tiny = KvLayout.of_model(MODEL_PRESETS["tiny"])
    assert tiny.bytes_per_block(512) == 1 << 20 == 512 * MODEL_PRESETS["tiny"].kv_bytes_per_token
    store = allocate(LATENT, SLOTS, BLOCK_TOKENS, CPU)
    assert store.bytes_per_block == 3 * BLOCK_TOKENS * 5 * 2
    assert LATENT.split(store.read_blocks(store.index_of([1]), 2)[0])[0].shape == (BLOCK_TOKENS, 1, 5)


def test_blocks_read_back_in_the_order_asked_for() -> None:
    """Writes at an offset touch their tokens of their layer only."""
    store = allocate(LAYOUT, SLOTS, BLOCK_TOKENS, CPU)
    store.write(3, 1, 0, numbered(4, 0))
    store.write(0, 1, 1, numbered(2, 500))
    read_nBW = store.read_blocks(store.index_of([0, 3]), 1)
    assert torch.equal(read_nBW[1], numbered(4, 0))
    assert torch.equal(read_nBW[0, 1:3], numbered(2, 500))
    assert read_nBW[0, [0, 3]].abs().sum() == 0
    assert store.read_blocks(store.index_of([0, 3]), 0).abs().sum() == 0


def test_read_blocks_can_fill_a_buffer() -> None:
    """With *out* the copy is made there."""
    store = allocate(LAYOUT, SLOTS, BLOCK_TOKENS, CPU)
    store.write(2, 0, 0, numbered(4, 7))
    buffer = torch.empty(1, BLOCK_TOKENS, LAYOUT.width)
    store.read_blocks(store.index_of([2]), 0, out=buffer)
    assert torch.equal(buffer[0], numbered(4, 7))


def test_joined_blocks_are_the_prompt_without_the_empty_end() -> None:
    """Five tokens in two blocks of four come back as five, in order, in every layer."""
    store = allocate(LAYOUT, SLOTS, BLOCK_TOKENS, CPU)
    rows = numbered(5, 0)
    for layer in range(2):
        store.write(4, layer, 0, rows[:4] + layer)
        store.write(1, layer, 0, rows[4:] + layer)
    joined = join_blocks([store.block(4), store.block(1)], 5)
    assert torch.equal(joined, torch.stack([rows, rows + 1]))


def test_a_received_block_equals_the_sent_one() -> None:
    """Copying a block's view into another store's view moves all layers."""
    source, target = (allocate(LAYOUT, SLOTS, BLOCK_TOKENS, CPU) for _ in range(2))
    source.write(5, 1, 2, numbered(2, 9))
    target.block(0).copy_(source.block(5))
    assert torch.equal(
        target.read_blocks(target.index_of([0]), 1), source.read_blocks(source.index_of([5]), 1)
    )


def test_too_little_memory_is_told_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is allocated when it would not suffice."""
    monkeypatch.setattr(kv_store, "free_memory_bytes", lambda device: 3_000)
    with pytest.raises(ConfigError, match=r"6 blocks need 3,072 bytes .* of cpu, 3,000 are available"):
        allocate(LAYOUT, SLOTS, BLOCK_TOKENS, CPU)


def test_free_memory_is_what_the_kernel_says() -> None:
    """This machine has some memory left, and less than a petabyte."""
    assert 0 < kv_store.free_memory_bytes(CPU) < 1 << 50


def test_maps_go_to_memory_when_it_has_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A configured directory wins; a container's 64 MB of /dev/shm are left alone when too small."""
    monkeypatch.setattr(kv_store, "_MEMORY_FILES", tmp_path)
    monkeypatch.setattr(kv_store, "free_disk_bytes", lambda directory: 64 << 20)
    assert shared_directory("/some/where", 1 << 40) == Path("/some/where")
    assert shared_directory(None, 50 << 20) == tmp_path
    assert shared_directory(None, 60 << 20) != tmp_path


def test_storage_must_fit_the_layout() -> None:
    """A store over storage of another size cannot be made."""
    with pytest.raises(RuntimeError, match="shape"):
        KvStore(LAYOUT, SLOTS, BLOCK_TOKENS, torch.zeros(10))
