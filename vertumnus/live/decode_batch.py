"""Greedy decoding on a decode rank: one token for every sequence a step (sec. 3.1).

Token-local work is batched across sequences, attention is done for each. Token 1 needs no model run:
the prefill rank that computed position L - 1 sent its final hidden state.
"""

# B sequences of a step · H hidden size · N query heads · D head size · W elements of KV per token and layer

from typing import NamedTuple

import torch
from torch import Tensor

from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.units import JobId, Tokens
from vertumnus.domain.wording import counted
from vertumnus.live.attention import choose_kernel
from vertumnus.live.kv_store import KvLayout
from vertumnus.live.models.qwen3 import Projected, Qwen3


class DecodedToken(NamedTuple):
    """One token of one sequence."""

    job_id: JobId
    token: int
    is_last: bool
    """The output is complete: the sequence has left the batch."""


class _Sequence:
    """One sequence: its KV with room for the whole output, and where it stands."""

    def __init__(
        self, layers_kv: Tensor, input_tokens: Tokens, final_hidden: Tensor, output_tokens: Tokens
    ) -> None:
        layers, _, width = layers_kv.shape
        # the last token is never fed back, so its KV is never needed
        self.kv_LSW = layers_kv.new_empty(layers, input_tokens + output_tokens - 1, width)
        self.kv_LSW[:, :input_tokens] = layers_kv
        self.length = input_tokens
        """Positions whose KV is there."""
        self.remaining = output_tokens
        self.token: int | None = None
        """The newest token; None before token 1."""
        self.final_hidden = final_hidden


class DecodeBatch:
    """The sequences that one decode rank works on, in order of admission."""

    def __init__(self, model: Qwen3, device: torch.device) -> None:
        self._model = model
        self._device = device
        self._layout = KvLayout.of_model(model.config)
        self._kernel = choose_kernel(device, model.dtype)
        self._sequences: dict[JobId, _Sequence] = {}

    def __len__(self) -> int:
        return len(self._sequences)

    def admit(
        self,
        job_id: JobId,
        layers_kv: Tensor,
        input_tokens: Tokens,
        final_hidden: Tensor,
        output_tokens: Tokens,
    ) -> None:
        """Take in a prompt: its KV [layers, L, W] is copied, *final_hidden* [H] is that of position L - 1.

        Raises ProtocolError, the batch unchanged, when a size does not fit or the job is here already.
        """
        problems = self._problems(job_id, layers_kv, input_tokens, final_hidden, output_tokens)
        if problems:
            raise ProtocolError("\n".join(problems))
        kv, hidden = layers_kv.to(self._device), final_hidden.to(self._device)
        self._sequences[job_id] = _Sequence(kv, input_tokens, hidden, output_tokens)

    def remove(self, job_id: JobId) -> None:
        """Drop a sequence; nothing happens when it has left already."""
        self._sequences.pop(job_id, None)

    def step(self) -> list[DecodedToken]:
        """Return the next token of every sequence, in order of admission; complete ones leave."""
        if not self._sequences:
            return []
        started = [sequence for sequence in self._sequences.values() if sequence.token is not None]
        advanced = iter(self._advance(started)) if started else iter(())
        hidden_BH = torch.stack(
            [s.final_hidden if s.token is None else next(advanced) for s in self._sequences.values()]
        )
        best = self._model.logits(hidden_BH).argmax(dim=-1).tolist()
        return [self._emit(job_id, token) for job_id, token in zip(list(self._sequences), best, strict=True)]

    def _emit(self, job_id: JobId, token: int) -> DecodedToken:
        sequence = self._sequences[job_id]
        sequence.token = token
        sequence.remaining -= 1
        if sequence.remaining == 0:
            del self._sequences[job_id]
        return DecodedToken(job_id, token, sequence.remaining == 0)

    def _advance(self, sequences: list[_Sequence]) -> Tensor:
        """Feed each sequence its newest token; return the final hidden states [B, H]."""
        tokens = torch.tensor([sequence.token for sequence in sequences], device=self._device)
        positions = torch.tensor([sequence.length for sequence in sequences], device=self._device)
        for sequence in sequences:
            sequence.length += 1
        x_BH = self._model.embed(tokens)
        for index, layer in enumerate(self._model.layers):
            projected = layer.project(x_BH, positions)
            x_BH = layer.finish(x_BH, self._attend(index, projected, sequences))
        return self._model.final_norm(x_BH)

    def _attend(self, index: int, projected: Projected, sequences: list[_Sequence]) -> Tensor:
        outputs = []
        for row, sequence in enumerate(sequences):
            k_SKD, v_SKD = self._layout.split(sequence.kv_LSW[index, : sequence.length])
            k_SKD[-1], v_SKD[-1] = projected.k_TKD[row], projected.v_TKD[row]
            outputs.append(self._kernel.full(projected.q_TND[row : row + 1], k_SKD, v_SKD).out_TND)
        return torch.cat(outputs)

    def _problems(
        self,
        job_id: JobId,
        layers_kv: Tensor,
        input_tokens: Tokens,
        final_hidden: Tensor,
        output_tokens: Tokens,
    ) -> list[str]:
        config, found = self._model.config, []
        expected = (config.layers, input_tokens, self._layout.width)
        if job_id in self._sequences:
            found.append(f"job {job_id} is decoding already")
        if layers_kv.shape != expected:
            found.append(f"job {job_id}: KV has shape {list(layers_kv.shape)}, must be {list(expected)}")
        if final_hidden.shape != (config.hidden_size,):
            shape = list(final_hidden.shape)
            found.append(f"job {job_id}: final state has shape {shape}, must be [{config.hidden_size}]")
        if output_tokens < 1:
            found.append(f"job {job_id}: {counted(output_tokens, 'output token')}, must be at least 1")
        if input_tokens + output_tokens - 1 > config.max_position:
            found.append(
                f"job {job_id}: {input_tokens} prompt and {counted(output_tokens, 'output token')}, "
                f"the model takes at most {config.max_position}"
            )
        return found
