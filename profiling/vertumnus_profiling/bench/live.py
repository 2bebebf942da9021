"""The live engine's bargains: what a second rank buys a prefill, and what moving and copying KV costs.

Imports torch, so that its absence must be found out before this module is imported.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import torch
from torch import Tensor

from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.kv_store import KvLayout, KvStore, join_blocks, shared_directory
from vertumnus.live.messages import Copy
from vertumnus.live.shared_map import map_store, nameless_file
from vertumnus.live.slot_copy import SharedCopies
from vertumnus.live.transfer import SharedBlocks
from vertumnus_profiling.bench.cp_pair import BLOCK_TOKENS, CpPair
from vertumnus_profiling.bench.measure import Result, Settings, ratios, result, timed_ns

MODEL = MODEL_PRESETS["tiny"]
PROMPTS = (256, 1_024, 2_048)
"""Prompt lengths of the speed-up, without a cached prefix [tokens]."""
MOVED_TOKENS = 2_040
"""Not whole blocks, as prompts are."""
MOVED_BLOCKS = -(-MOVED_TOKENS // BLOCK_TOKENS)
"""A prompt's blocks; the store holds a few prompts of this size, more than a processor's cache."""
STORED_PROMPTS = 16


def cp_speedup(settings: Settings) -> Iterator[Result]:
    """Prefill time of model tiny at degree 1 over that at degree 2, one thread a rank."""
    prompts = PROMPTS[:1] if settings.quick else PROMPTS
    with CpPair(MODEL, max(prompts)) as pair:
        for tokens in prompts:
            steps = max(1, settings.size(8_192, 256) // tokens)
            alone, together = [], []
            pair.step_ns(tokens, 1), pair.step_ns(tokens, 2)  # the first step of a length allocates
            for _ in range(settings.repeats):
                alone.append(sum(pair.step_ns(tokens, 1) for _ in range(steps)) / steps)
                together.append(sum(pair.step_ns(tokens, 2) for _ in range(steps)) / steps)
            name = f"cp_speedup/{tokens}_tokens"
            yield result(f"{name}/cp1", "us", [ns / 1_000 for ns in alone], steps)
            yield result(f"{name}/cp2", "us", [ns / 1_000 for ns in together], steps)
            yield result(f"{name}/cp1_over_cp2", "x", ratios(alone, together), steps)


def kv_movement(settings: Settings) -> Iterator[Result]:
    """Reading a prompt's blocks out of another process's map, against copying as many bytes at once."""
    layout = KvLayout.of_model(MODEL)
    slots = STORED_PROMPTS * MOVED_BLOCKS
    with _one_thread(), _mapped_store(layout, slots) as store:
        source, prompts = SharedBlocks([store], slots), settings.size(4 * STORED_PROMPTS, 2)
        flat = torch.ones(STORED_PROMPTS, layout.layers, MOVED_TOKENS, layout.width, dtype=layout.dtype)
        reads, copies = [], []
        for _ in range(settings.repeats):
            reads.append(timed_ns(lambda: [_read(source, prompt) for prompt in range(prompts)]))
            copies.append(timed_ns(lambda: [_copy(flat, prompt) for prompt in range(prompts)]))
    moved = prompts * flat[0].numel() * layout.dtype.itemsize
    yield result("kv_movement/mapped", "bytes/s", [moved * 1e9 / ns for ns in reads], prompts)
    yield result("kv_movement/memcpy", "bytes/s", [moved * 1e9 / ns for ns in copies], prompts)
    yield result("kv_movement/mapped_over_memcpy", "x", ratios(copies, reads), prompts)


def kv_copy(settings: Settings) -> Iterator[Result]:
    """A prompt's blocks from a degree-2 worker's maps into one rank's, against a plain copy between maps."""
    layout = KvLayout.of_model(MODEL)
    slots = STORED_PROMPTS * MOVED_BLOCKS
    with _one_thread(), ExitStack() as maps:
        sources = [maps.enter_context(_mapped_store(layout, slots)) for _ in range(2)]
        stores = [*sources, maps.enter_context(_mapped_store(layout, slots, writable=True))]
        into, prompts = SharedCopies(stores[2], SharedBlocks(stores, slots), slots), settings.size(64, 2)
        orders = [_repartition(prompt % STORED_PROMPTS, slots) for prompt in range(prompts)]
        repartitioned, plain = [], []
        for _ in range(settings.repeats):
            repartitioned.append(timed_ns(lambda: [into.copy(order) for order in orders]))
            plain.append(timed_ns(lambda: [_copy_plainly(stores, prompt) for prompt in range(prompts)]))
    moved = prompts * MOVED_BLOCKS * layout.bytes_per_block(BLOCK_TOKENS)
    yield result("kv_copy/inter_degree", "bytes/s", [moved * 1e9 / ns for ns in repartitioned], prompts)
    yield result("kv_copy/plain", "bytes/s", [moved * 1e9 / ns for ns in plain], prompts)
    yield result("kv_copy/inter_degree_over_plain", "x", ratios(plain, repartitioned), prompts)


def _repartition(prompt: int, slots: int) -> Copy:
    """Return the copy of a prompt whose blocks alternate between ranks 0 and 1 to rank 2."""
    here = range(prompt * MOVED_BLOCKS, (prompt + 1) * MOVED_BLOCKS)
    return Copy(prompt, tuple((slot % 2 * slots + slot, 2 * slots + slot) for slot in here), ())


def _copy_plainly(stores: Sequence[KvStore], prompt: int) -> Tensor:
    """Copy as many bytes in one piece."""
    source, destination = (_memory(store, prompt % STORED_PROMPTS) for store in (stores[0], stores[2]))
    return destination.copy_(source)


def _memory(store: KvStore, prompt: int) -> Tensor:
    """Return the memory of a prompt's slots, which follow one another, as one run."""
    block = store.block(prompt * MOVED_BLOCKS)
    return block.as_strided((MOVED_BLOCKS * block.numel(),), (1,))


def _read(source: SharedBlocks, prompt: int) -> Tensor:
    first = prompt % STORED_PROMPTS * MOVED_BLOCKS
    return join_blocks(source.take(0, range(first, first + MOVED_BLOCKS)), MOVED_TOKENS)


def _copy(flat: Tensor, prompt: int) -> Tensor:
    return flat[prompt % STORED_PROMPTS].clone()


@contextmanager
def _mapped_store(layout: KvLayout, slots: int, *, writable: bool = False) -> Iterator[KvStore]:
    """Yield a reader's view, or another writer's, of a store whose writer has filled every block."""
    size = slots * layout.bytes_per_block(BLOCK_TOKENS)
    with closing(nameless_file(shared_directory(None, size), size)) as file:
        writer = map_store(file.fileno(), layout, slots, BLOCK_TOKENS, writable=True)
        for slot in range(slots):
            writer.block(slot).fill_(1.0)
        yield map_store(file.fileno(), layout, slots, BLOCK_TOKENS, writable=writable)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread, as ranks do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
