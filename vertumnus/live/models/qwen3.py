"""Qwen3 dense."""

from collections.abc import Mapping

from torch import Tensor

from vertumnus.live.config import ModelConfig


class Qwen3:
    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        raise NotImplementedError
