"""Greedy decoding, batched across requests."""

from typing import NamedTuple

import torch
from torch import Tensor

from vertumnus.domain.units import JobId, Tokens
from vertumnus.live.models.qwen3 import Qwen3


class DecodedToken(NamedTuple):
    job_id: JobId
    token: int
    is_last: bool


class DecodeBatch:
    def __init__(self, model: Qwen3, device: torch.device) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def admit(
        self,
        job_id: JobId,
        layers_kv: Tensor,
        input_tokens: Tokens,
        final_hidden: Tensor,
        output_tokens: Tokens,
    ) -> None:
        """layers_kv: [layers, input_tokens, width] (kv_store.join_blocks makes it)."""
        raise NotImplementedError

    def step(self) -> list[DecodedToken]:
        """One token for every sequence, in order of admission; finished sequences leave."""
        raise NotImplementedError

    def remove(self, job_id: JobId) -> None:
        raise NotImplementedError
