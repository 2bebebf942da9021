"""Weights."""

from pathlib import Path

import torch
from torch import Tensor

from vertumnus.live.config import ModelConfig
from vertumnus.live.models.qwen3 import Qwen3


def random_weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    raise NotImplementedError


def load_weights(config: ModelConfig, directory: Path) -> dict[str, Tensor]:
    raise NotImplementedError


def build_model(config: ModelConfig, weights: Path | None, seed: int, device: torch.device) -> Qwen3:
    raise NotImplementedError
