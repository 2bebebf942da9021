"""What HF's Qwen3 generates with the weights that the live driver's ranks draw."""

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Qwen3ForCausalLM

from tests.support.live_driver import MODEL, SEED
from tests.support.outputs import first_difference
from tests.support.qwen3_reference import greedy, hf_model
from vertumnus.live.weights import random_weights


def differs_from_hf(output: list[int], prompt: NDArray[np.integer[Any]]) -> str | None:
    """Say where *output* departs from HF's greedy continuation of *prompt*; None when it does not."""
    prompt_S = torch.from_numpy(prompt.astype(np.int64))
    wanted = greedy(_reference(), prompt_S, len(output))
    step = first_difference(output, wanted.tokens, wanted.logits_TV)
    return None if step is None else f"token {step} is {output[step]}, HF's is {wanted.tokens[step]}"


@cache
def _reference() -> Qwen3ForCausalLM:
    return hf_model(MODEL, random_weights(MODEL, SEED))
