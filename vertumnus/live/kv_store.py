"""Tensors behind block slots."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vertumnus.live.config import ModelConfig


class KvPart(NamedTuple):
    """One tensor kept per token and layer."""

    name: str
    heads: int
    head_dim: int


class KvLayout(NamedTuple):
    """What a model keeps per token: parts side by side in one row of *width* elements."""

    layers: int
    parts: tuple[KvPart, ...]
    dtype: torch.dtype

    @classmethod
    def of_model(cls, config: ModelConfig) -> "KvLayout":
        raise NotImplementedError

    @property
    def width(self) -> int:
        raise NotImplementedError

    def split(self, rows_SW: Tensor) -> tuple[Tensor, ...]:
        raise NotImplementedError


class KvStore:
    """One rank's block slots. storage: [slots, layers, block_tokens, width]."""

    def __init__(self, layout: KvLayout, slots: int, block_tokens: int, storage: Tensor) -> None:
        raise NotImplementedError

    @property
    def bytes_per_block(self) -> int:
        raise NotImplementedError

    def write(self, slot: int, layer: int, offset: int, values_TW: Tensor) -> None:
        raise NotImplementedError

    def read_blocks(self, slots: Sequence[int], layer: int) -> Tensor:
        """-> [len(slots), block_tokens, width]"""
        raise NotImplementedError

    def block(self, slot: int) -> Tensor:
        """-> view [layers, block_tokens, width]; copy_ into it to receive a block."""
        raise NotImplementedError


def allocate(layout: KvLayout, slots: int, block_tokens: int, device: torch.device) -> KvStore:
    raise NotImplementedError


def map_file(path: Path, layout: KvLayout, slots: int, block_tokens: int, *, owner: bool) -> KvStore:
    """owner=True creates and reserves the file; owner=False opens it read-only."""
    raise NotImplementedError


def shared_directory(configured: Path | None, needed_bytes: int) -> Path:
    raise NotImplementedError


def join_blocks(blocks: Sequence[Tensor], tokens: int) -> Tensor:
    """blocks of a prompt, each [layers, block_tokens, width], -> [layers, tokens, width]"""
    raise NotImplementedError
