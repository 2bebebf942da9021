"""Tensors behind block slots: what a rank keeps of its prompts.

A slot holds one block of one prompt: *block_tokens* tokens, all layers. The storage may be memory of a
device or a file mapped by several ranks of a host (`shared_map`); a store does not know which.
"""

# T tokens · B tokens of a block · L layers · n blocks · W elements per token and layer

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.live.config import ModelConfig
from vertumnus.live.machine import available_memory_bytes
from vertumnus.live.weights import DTYPES

_MEMORY_FILES = Path("/dev/shm")
_SPARE = 1.25
"""/dev/shm is taken when it is this much larger than needed: others on the host use it, too."""


class KvPart(NamedTuple):
    """One tensor that a layer keeps for each token."""

    name: str
    heads: int
    head_dim: int


class KvLayout(NamedTuple):
    """What a model keeps of a token in each layer: its parts side by side in one row.

    Grouped-query attention keeps two parts, keys and values; latent attention would keep one.
    """

    layers: int
    parts: tuple[KvPart, ...]
    dtype: torch.dtype

    @classmethod
    def of_model(cls, config: ModelConfig) -> "KvLayout":
        """Return the layout of a grouped-query model: parts k and v of K heads of size D."""
        k, v = (KvPart(name, config.kv_heads, config.head_dim) for name in ("k", "v"))
        return cls(config.layers, (k, v), DTYPES[config.dtype])

    @property
    def width(self) -> int:
        """W: elements of one token in one layer."""
        return sum(part.heads * part.head_dim for part in self.parts)

    def split(self, rows_TW: Tensor) -> tuple[Tensor, ...]:
        """Return views [T, heads, head_dim] of the parts of *rows_TW*, in order."""
        widths = [part.heads * part.head_dim for part in self.parts]
        columns = torch.split(rows_TW, widths, dim=-1)
        return tuple(
            column.view(len(rows_TW), part.heads, part.head_dim)
            for column, part in zip(columns, self.parts, strict=True)
        )

    def bytes_per_block(self, block_tokens: int) -> int:
        """Size of one block over all layers [bytes]."""
        return self.layers * block_tokens * self.width * self.dtype.itemsize


class KvStore:
    """The block slots of one rank."""

    def __init__(self, layout: KvLayout, slots: int, block_tokens: int, storage: Tensor) -> None:
        """Keep blocks in *storage*, which has slots * L * B * W elements of the layout's dtype."""
        self.layout = layout
        self.slots = slots
        self.block_tokens = block_tokens
        self._blocks_nLBW = storage.view(slots, layout.layers, block_tokens, layout.width)

    @property
    def device(self) -> torch.device:
        """Where the blocks are."""
        return self._blocks_nLBW.device

    @property
    def bytes_per_block(self) -> int:
        """Size of one block over all layers [bytes]."""
        return self.layout.bytes_per_block(self.block_tokens)

    def write(self, slot: int, layer: int, offset: int, values_TW: Tensor) -> None:
        """Put the rows of consecutive tokens into *slot*, from its token *offset* on."""
        self._blocks_nLBW[slot, layer, offset : offset + len(values_TW)] = values_TW

    def index_of(self, slots: Sequence[int]) -> Tensor:
        """Return *slots* as `read_blocks` takes them [n]: made once, for all layers of a step."""
        return torch.tensor(slots, dtype=torch.int64, device=self.device)

    def read_blocks(self, index_n: Tensor, layer: int, out: Tensor | None = None) -> Tensor:
        """Return a copy of one layer of the slots *index_n* [n, B, W], in their order, in *out* if given."""
        return torch.index_select(self._blocks_nLBW[:, layer], 0, index_n, out=out)

    def block(self, slot: int) -> Tensor:
        """Return the contiguous block in *slot* as a view [L, B, W]: what a transfer reads or fills."""
        return self._blocks_nLBW[slot]


def join_blocks(blocks: Sequence[Tensor], tokens: int) -> Tensor:
    """Return the first *tokens* tokens of a prompt as [L, T, W], copied from its blocks [L, B, W]."""
    return torch.cat(tuple(blocks), dim=1)[:, :tokens].contiguous()


def allocate(layout: KvLayout, slots: int, block_tokens: int, device: torch.device) -> KvStore:
    """Return an empty store in the memory of *device*.

    Raises ConfigError with the bytes needed and available when it does not fit.
    """
    needed, available = slots * layout.bytes_per_block(block_tokens), free_memory_bytes(device)
    if needed > available:
        raise ConfigError(
            f"cluster.blocks_per_rank: {counted(slots, 'block')} need {counted(needed, 'byte')} in the "
            f"memory of {device}, "
            f"{available:,} are available"
        )
    storage = torch.zeros(needed // layout.dtype.itemsize, dtype=layout.dtype, device=device)
    return KvStore(layout, slots, block_tokens, storage)


def shared_directory(configured: str | None, needed_bytes: int) -> Path:
    """Return where maps of *needed_bytes* in all shall lie: as configured, else where there is room."""
    if configured is not None:
        return Path(configured)
    # containers often have a /dev/shm of 64 MB
    if _MEMORY_FILES.is_dir() and free_disk_bytes(_MEMORY_FILES) >= _SPARE * needed_bytes:
        return _MEMORY_FILES
    return Path(tempfile.gettempdir())


def free_disk_bytes(directory: Path) -> int:
    """Return the room for new files in *directory* [bytes]."""
    file_system = os.statvfs(directory)
    return file_system.f_bavail * file_system.f_frsize


def free_memory_bytes(device: torch.device) -> int:
    """Return the memory of *device* that a new tensor may take [bytes]."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return available_memory_bytes()
