"""The dense Qwen3 decoder, cut where context parallelism cuts it: before and after attention.

Everything here is token-local: a rank calls it with any set of tokens and their positions.
Attention lies between ``project`` and ``finish`` and belongs to the caller.
"""

# T tokens on this rank · H hidden size · N query heads · K KV heads · D head size · V vocabulary

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vertumnus.live.config import ModelConfig


class Projected(NamedTuple):
    """What attention needs of some tokens in one layer; keys and queries carry their position."""

    q_TND: Tensor
    k_TKD: Tensor
    v_TKD: Tensor


class RmsNorm(NamedTuple):
    """Root-mean-square normalisation of the last dim, computed in float32."""

    weight: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        """Return *x* normalised and scaled, in the dtype of *x*."""
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * scaled.to(x.dtype)


class Rotary:
    """Rotary position embedding: a table of the angles of every position up to *max_position*."""

    def __init__(self, head_dim: int, theta: float, max_position: int, like: Tensor) -> None:
        halves = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        # this very expression: an ulp in a frequency is 1e-4 rad at position 2,000
        frequencies = 1.0 / theta**halves
        angles = torch.outer(torch.arange(max_position, dtype=torch.float32), frequencies)
        self._cos = angles.cos().to(like)
        self._sin = angles.sin().to(like)

    def __call__(self, x_THD: Tensor, positions_T: Tensor) -> Tensor:
        """Return the heads of *x_THD* turned to their positions; pairs are (i, i + D/2)."""
        cos = self._cos.index_select(0, positions_T).unsqueeze(1)
        sin = self._sin.index_select(0, positions_T).unsqueeze(1)
        first, second = x_THD.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Layer:
    """One decoder layer: pre-norm GQA attention with q/k norm, then pre-norm SwiGLU."""

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Tensor], prefix: str, rotary: Rotary
    ) -> None:
        def weight(name: str) -> Tensor:
            return weights[f"{prefix}{name}.weight"]

        def norm(name: str) -> RmsNorm:
            return RmsNorm(weight(name), config.norm_eps)

        self._shape = config
        self._rotary = rotary
        self._input_norm = norm("input_layernorm")
        self._post_norm = norm("post_attention_layernorm")
        self._q_norm = norm("self_attn.q_norm")
        self._k_norm = norm("self_attn.k_norm")
        # one product instead of three, and of two: fewer passes over x
        self._qkv = torch.cat([weight(f"self_attn.{part}_proj") for part in "qkv"])
        self._gate_up = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")])
        self._output = weight("self_attn.o_proj")
        self._down = weight("mlp.down_proj")

    def project(self, x_TH: Tensor, positions_T: Tensor) -> Projected:
        """Return queries, keys and values of the tokens at *positions_T* (0 = start of the prompt)."""
        shape = self._shape
        counts = [shape.query_heads, shape.kv_heads, shape.kv_heads]
        heads = F.linear(self._input_norm(x_TH), self._qkv).view(len(x_TH), sum(counts), shape.head_dim)
        q, k, v = torch.split(heads, counts, dim=1)
        q = self._rotary(self._q_norm(q), positions_T)
        k = self._rotary(self._k_norm(k), positions_T)
        return Projected(q, k, v)

    def finish(self, x_TH: Tensor, attended_TND: Tensor) -> Tensor:
        """Return the residual stream after this layer, given what attention returned."""
        x_TH = x_TH + F.linear(attended_TND.flatten(1), self._output)
        gate, up = F.linear(self._post_norm(x_TH), self._gate_up).chunk(2, dim=-1)
        return x_TH + F.linear(F.silu(gate) * up, self._down)


class Qwen3:
    """The model's token-local parts, in order: embed, layers, final_norm, logits."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        """Take *weights* by HF's names (see `weight_shapes`), all on one device and of one dtype."""
        self.config = config
        self._embedding = weights["model.embed_tokens.weight"]
        self._head = self._embedding if config.tied_embeddings else weights["lm_head.weight"]
        rotary = Rotary(config.head_dim, config.rope_theta, config.max_position, self._embedding)
        self.layers = [
            Layer(config, weights, f"model.layers.{index}.", rotary) for index in range(config.layers)
        ]
        self._final_norm = RmsNorm(weights["model.norm.weight"], config.norm_eps)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._embedding.device

    @property
    def dtype(self) -> torch.dtype:
        """Type of weights and activations."""
        return self._embedding.dtype

    def embed(self, tokens_T: Tensor) -> Tensor:
        """Return the residual stream [T, H] of token ids."""
        return F.embedding(tokens_T, self._embedding)

    def final_norm(self, x_TH: Tensor) -> Tensor:
        """Return the normalised residual stream that the output head reads."""
        return self._final_norm(x_TH)

    def logits(self, hidden_TH: Tensor) -> Tensor:
        """Return the logits [T, V] of states that went through `final_norm`."""
        return F.linear(hidden_TH, self._head)


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight, as HF's Qwen3ForCausalLM calls them."""
    hidden, vocab = config.hidden_size, config.vocab_size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, hidden)}
    for index in range(config.layers):
        for name, shape in _layer_shapes(config).items():
            shapes[f"model.layers.{index}.{name}.weight"] = shape
    shapes["model.norm.weight"] = (hidden,)
    if not config.tied_embeddings:
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def _layer_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    hidden, inner, head = config.hidden_size, config.intermediate_size, config.head_dim
    queries, keys = config.query_heads * head, config.kv_heads * head
    return {
        "input_layernorm": (hidden,),
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.q_norm": (head,),
        "self_attn.k_norm": (head,),
        "self_attn.o_proj": (hidden, queries),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
