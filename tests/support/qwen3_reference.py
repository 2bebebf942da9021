"""HF's Qwen3ForCausalLM with our weights: what the live engine's numbers are compared with."""

from typing import NamedTuple

import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from vertumnus.live.config import ModelConfig

# S tokens of a sequence · V vocabulary · L layers · W elements of KV per token and layer


class Reference(NamedTuple):
    """One sequence as HF computes it; by causality row t serves every prompt that begins alike."""

    tokens_S: Tensor
    logits_SV: Tensor
    kv_LSW: Tensor
    """Keys, then values, heads side by side."""


class Greedy(NamedTuple):
    """What HF generates, and the logits that chose each token."""

    tokens: list[int]
    logits_TV: Tensor


def hf_model(config: ModelConfig, weights: dict[str, Tensor]) -> Qwen3ForCausalLM:
    """Return HF's model of *config* with *weights*; a name that does not fit raises."""
    hf_config = Qwen3Config(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.query_heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.max_position,
        rms_norm_eps=config.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        tie_word_embeddings=config.tied_embeddings,
        attention_bias=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    model = Qwen3ForCausalLM(hf_config).eval()
    model.load_state_dict(weights, strict=not config.tied_embeddings)
    return model


@torch.no_grad()
def reference(model: Qwen3ForCausalLM, length: int, seed: int) -> Reference:
    """Return a random sequence of *length* tokens and HF's logits and KV for it."""
    draw = torch.Generator().manual_seed(seed)
    tokens_S = torch.randint(model.config.vocab_size, (length,), generator=draw)
    logits_1SV, cache = model(tokens_S[None], use_cache=True, return_dict=False)
    layers = cache.layers
    kv_LSW = torch.stack(
        [
            torch.cat([part[0].transpose(0, 1).flatten(1) for part in (layer.keys, layer.values)], dim=1)
            for layer in layers
        ]
    )
    return Reference(tokens_S, logits_1SV[0], kv_LSW)


@torch.no_grad()
def greedy(model: Qwen3ForCausalLM, prompt_S: Tensor, output_tokens: int) -> Greedy:
    """Return HF's greedy continuation of a prompt."""
    output = model.generate(
        prompt_S[None],
        attention_mask=torch.ones_like(prompt_S)[None],
        do_sample=False,
        max_new_tokens=output_tokens,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return Greedy(output.sequences[0, len(prompt_S) :].tolist(), torch.cat(output.logits))
