"""Batched greedy decoding continues a prompt as HF does, whoever else is in the batch."""

from functools import cache

import pytest
import torch
from transformers import Qwen3ForCausalLM

from tests.support.outputs import first_difference
from tests.support.qwen3_reference import Reference, greedy, hf_model, reference
from vertumnus.domain.errors import ProtocolError
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.decode_batch import DecodeBatch, DecodedToken
from vertumnus.live.models.qwen3 import Qwen3
from vertumnus.live.weights import random_weights

CONFIG = MODEL_PRESETS["nano"]
CPU = torch.device("cpu")


@cache
def hf() -> Qwen3ForCausalLM:
    """Return HF's model."""
    return hf_model(CONFIG, random_weights(CONFIG, 0))


@cache
def text(length: int) -> Reference:
    """Return a prompt of *length* tokens with HF's KV and final logits."""
    return reference(hf(), length, seed=length)


@cache
def final_hidden(length: int) -> torch.Tensor:
    """Return the state of the prompt's last position after the final norm, from HF."""
    with torch.no_grad():
        return hf().model(text(length).tokens_S[None]).last_hidden_state[0, -1]


def a_batch() -> DecodeBatch:
    """Return an empty batch of the model that HF has."""
    return DecodeBatch(Qwen3(CONFIG, random_weights(CONFIG, 0)), CPU)


def admit(batch: DecodeBatch, job_id: int, length: int, output_tokens: int) -> None:
    """Hand a prompt of *length* tokens over to *batch*."""
    batch.admit(job_id, text(length).kv_LSW, length, final_hidden(length), output_tokens)


def drain(batch: DecodeBatch) -> list[DecodedToken]:
    """Step until every sequence has left."""
    tokens = []
    while len(batch):
        tokens += batch.step()
    return tokens


def assert_is_hfs(tokens: list[DecodedToken], job_id: int, length: int, output_tokens: int) -> None:
    """The job's tokens are what HF generates, and the last one alone says so."""
    mine = [token for token in tokens if token.job_id == job_id]
    wanted = greedy(hf(), text(length).tokens_S, output_tokens)
    assert [token.is_last for token in mine] == [False] * (output_tokens - 1) + [True]
    assert first_difference([token.token for token in mine], wanted.tokens, wanted.logits_TV) is None


def test_sequences_of_different_lengths_decode_together() -> None:
    """Joining and leaving at different steps changes nobody's text."""
    batch = a_batch()
    admit(batch, 10, length=50, output_tokens=8)
    tokens = batch.step() + batch.step()
    admit(batch, 11, length=7, output_tokens=3)
    admit(batch, 12, length=120, output_tokens=6)
    tokens += drain(batch)
    for job_id, length, output_tokens in [(10, 50, 8), (11, 7, 3), (12, 120, 6)]:
        assert_is_hfs(tokens, job_id, length, output_tokens)


def test_token_one_comes_from_the_final_state_alone() -> None:
    """The first step after admission needs no model run: damaged KV cannot change token 1."""
    batch = a_batch()
    batch.admit(1, torch.full_like(text(20).kv_LSW, 1e3), 20, final_hidden(20), 1)
    assert batch.step() == [DecodedToken(1, int(text(20).logits_SV[-1].argmax()), is_last=True)]
    assert len(batch) == 0


def test_damaged_kv_changes_the_text() -> None:
    """Negative control: from token 2 on every row of the KV counts."""
    batch = a_batch()
    kv_LSW = text(20).kv_LSW.clone()
    kv_LSW[:, 5] = 0.0
    batch.admit(1, kv_LSW, 20, final_hidden(20), 8)
    wanted = greedy(hf(), text(20).tokens_S, 8)
    assert first_difference([t.token for t in drain(batch)], wanted.tokens, wanted.logits_TV) is not None


def test_a_removed_sequence_leaves_the_others_alone() -> None:
    """Removal needs no step, may come twice, and its neighbour's text goes on."""
    batch = a_batch()
    admit(batch, 1, length=50, output_tokens=9)
    admit(batch, 2, length=7, output_tokens=4)
    tokens = batch.step()
    batch.remove(1)
    batch.remove(1)
    tokens += drain(batch)
    assert [token.job_id for token in tokens] == [1, 2, 2, 2, 2]
    assert_is_hfs(tokens, 2, 7, 4)


def test_tokens_come_in_order_of_admission() -> None:
    """A step yields one token a sequence, the oldest sequence first; an empty batch yields none."""
    batch = a_batch()
    assert batch.step() == []
    for job_id in (7, 3, 5):
        admit(batch, job_id, length=7, output_tokens=2)
    assert [token.job_id for token in batch.step()] == [7, 3, 5]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"job_id": 1}, "job 1 is decoding already"),
        ({"input_tokens": 21}, r"KV has shape \[2, 20, 128\], must be \[2, 21, 128\]"),
        ({"final_hidden": torch.zeros(5)}, r"final state has shape \[5\], must be \[128\]"),
        ({"output_tokens": 0}, "0 output tokens, must be at least 1"),
        ({"output_tokens": 32_768}, "20 prompt and 32,768 output tokens, the model takes at most 32768"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], problem: str) -> None:
    """The error names the job and both sizes, and the batch is as before."""
    batch = a_batch()
    admit(batch, 1, length=7, output_tokens=2)
    arguments = {
        "job_id": 2,
        "layers_kv": text(20).kv_LSW,
        "input_tokens": 20,
        "final_hidden": final_hidden(20),
        "output_tokens": 2,
    }
    with pytest.raises(ProtocolError, match=problem):
        batch.admit(**{**arguments, **change})
    assert len(batch) == 1
