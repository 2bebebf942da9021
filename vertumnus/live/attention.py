"""Attention in parts that merge exactly: every part returns its output and its log-sum-exp (sec. 2.1).

A chunk [s, e) attends fully to [0, s) and causally to itself. Parts over disjoint keys merge by their
log-sum-exp in any order, so keys may lie in as many pieces as ranks hold them.

On CPU the flash kernel is a private op of torch: it is used only where a self-test at start finds
that it does what this file says. On CUDA it is flash-attn. Elsewhere plain products do.
"""

# T queries · S keys · N query heads · K KV heads · G = N / K query heads of one KV head · D head size

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

_SELF_TEST_TOLERANCE = 1e-4
"""A kernel further than this from plain products (float32, scores of size 1) is not used."""


class Partial(NamedTuple):
    """Attention of some queries over some of their keys."""

    out_TND: Tensor
    lse_TN: Tensor
    """Natural log of the sum of exp(score), float32."""


class Kernel(Protocol):
    """The two forms of attention that everything else is made of; neither takes empty tensors."""

    def full(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor) -> Partial:
        """Every query sees every key."""

    def causal(self, q_TND: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Partial:
        """Query t sees keys 0 .. t."""


def merge(first: Partial, second: Partial) -> Partial:
    """Return the attention over the keys of both parts, which must be disjoint; float32."""
    lse_TN = torch.logaddexp(first.lse_TN, second.lse_TN)
    first_share = (first.lse_TN - lse_TN).exp().unsqueeze(-1)
    return Partial(torch.lerp(second.out_TND.float(), first.out_TND.float(), first_share), lse_TN)


def attend_chunk(kernel: Kernel, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor, causal_from: int) -> Partial:
    """Return a chunk's attention: full on keys [0, causal_from), causal on the T keys from there on.

    The chunk must not be empty; keys after its last query are not looked at.
    """
    end = causal_from + q_TND.shape[0]
    own = kernel.causal(q_TND, k_SKD[causal_from:end], v_SKD[causal_from:end])
    if causal_from == 0:
        return own
    return merge(own, kernel.full(q_TND, k_SKD[:causal_from], v_SKD[:causal_from]))


def _grouped(q_TND: Tensor, kv_heads: int) -> Tensor:
    queries, query_heads, head_dim = q_TND.shape
    return q_TND.view(queries, kv_heads, query_heads // kv_heads, head_dim)


class PlainKernel:
    """Attention as products of matrices: any device, any dtype, memory of T x S."""

    def full(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor) -> Partial:
        """Every query sees every key."""
        return _plain(q_TND, k_SKD, v_SKD, None)

    def causal(self, q_TND: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Partial:
        """Query t sees keys 0 .. t."""
        count = q_TND.shape[0]
        hidden = torch.ones(count, count, dtype=torch.bool, device=q_TND.device).triu(1)
        return _plain(q_TND, k_TKD, v_TKD, hidden)


def _plain(q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor, hidden_TS: Tensor | None) -> Partial:
    q_TKGD = _grouped(q_TND, k_SKD.shape[1]).float() / math.sqrt(q_TND.shape[-1])
    scores_KGTS = torch.einsum("tkgd,skd->kgts", q_TKGD, k_SKD.float())
    if hidden_TS is not None:
        scores_KGTS.masked_fill_(hidden_TS, -math.inf)
    lse_KGT = scores_KGTS.logsumexp(-1)
    shares_KGTS = (scores_KGTS - lse_KGT.unsqueeze(-1)).exp()
    out_TKGD = torch.einsum("kgts,skd->tkgd", shares_KGTS, v_SKD.float())
    return Partial(out_TKGD.flatten(1, 2).to(q_TND.dtype), lse_KGT.flatten(0, 1).t())


class CpuFlashKernel:
    """Torch's flash attention for CPU, the private op behind scaled_dot_product_attention."""

    def full(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor) -> Partial:
        """Every query sees every key; the query heads of one KV head are folded into the queries."""
        queries, kv_heads = q_TND.shape[0], k_SKD.shape[1]
        q_KGTD = _grouped(q_TND, kv_heads).permute(1, 2, 0, 3)
        q_K1FD = q_KGTD.reshape(kv_heads, 1, -1, q_TND.shape[-1])
        k_K1SD, v_K1SD = (part.transpose(0, 1).unsqueeze(1) for part in (k_SKD, v_SKD))
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q_K1FD, k_K1SD, v_K1SD)
        return _from_heads(out.view(kv_heads, -1, queries, out.shape[-1]), lse.view(kv_heads, -1, queries))

    def causal(self, q_TND: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Partial:
        """Query t sees keys 0 .. t; keys are not repeated for their query heads, only viewed so."""
        q_KGTD = _grouped(q_TND, k_TKD.shape[1]).permute(1, 2, 0, 3)
        group = q_KGTD.shape[1]
        k_KGTD, v_KGTD = (
            part.transpose(0, 1).unsqueeze(1).expand(-1, group, -1, -1) for part in (k_TKD, v_TKD)
        )
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q_KGTD, k_KGTD, v_KGTD, is_causal=True
        )
        return _from_heads(out, lse)


def _from_heads(out_KGTD: Tensor, lse_KGT: Tensor) -> Partial:
    return Partial(out_KGTD.permute(2, 0, 1, 3).flatten(1, 2), lse_KGT.permute(2, 0, 1).flatten(1))


class CudaFlashKernel:
    """flash-attn on CUDA, half-precision types only (extra ``cuda``).

    Raises ImportError when made without the package.
    """

    def __init__(self) -> None:
        from flash_attn import flash_attn_func  # an optional extra, CUDA only

        self._flash = flash_attn_func

    def full(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor) -> Partial:
        """Every query sees every key."""
        return self._attend(q_TND, k_SKD, v_SKD, causal=False)

    def causal(self, q_TND: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Partial:
        """Query t sees keys 0 .. t."""
        return self._attend(q_TND, k_TKD, v_TKD, causal=True)

    def _attend(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor, *, causal: bool) -> Partial:
        # a batch of one: the form with cumulative lengths would make them on the host, and wait for the
        # device in every layer
        batch = (part.unsqueeze(0) for part in (q_TND, k_SKD, v_SKD))
        out_1TND, lse_1NT, _ = self._flash(*batch, causal=causal, return_attn_probs=True)
        return Partial(out_1TND[0], lse_1NT[0].t())


def choose_kernel(device: torch.device, dtype: torch.dtype) -> Kernel:
    """Return the fastest kernel that passes its self-test on *device* with *dtype*."""
    if device.type == "cpu" and is_sound(CpuFlashKernel(), device, dtype):
        return CpuFlashKernel()
    if device.type == "cuda" and dtype in (torch.bfloat16, torch.float16):
        try:
            cuda = CudaFlashKernel()
        except ImportError:
            return PlainKernel()
        if is_sound(cuda, device, dtype):
            return cuda
    return PlainKernel()


def is_sound(kernel: Kernel, device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether *kernel* agrees with plain products on a grouped-query example, values and LSE."""
    draw = torch.Generator().manual_seed(0)
    q_TND = torch.randn(5, 4, 32, generator=draw).to(device, dtype)
    k_SKD, v_SKD = (torch.randn(5, 2, 32, generator=draw).to(device, dtype) for _ in range(2))
    plain = PlainKernel()
    # half-precision types round at about 1e-2 of their size
    tolerance = _SELF_TEST_TOLERANCE if dtype == torch.float32 else 3e-2
    try:
        pairs = (
            (kernel.full(q_TND[:3], k_SKD, v_SKD), plain.full(q_TND[:3], k_SKD, v_SKD)),
            (kernel.causal(q_TND, k_SKD, v_SKD), plain.causal(q_TND, k_SKD, v_SKD)),
        )
    except (RuntimeError, TypeError, AttributeError, NotImplementedError):
        return False  # another torch: the private op is gone or has changed its form
    return all(
        a.shape == b.shape and bool((a.float() - b.float()).abs().max() <= tolerance)
        for found, wanted in pairs
        for a, b in zip(found, wanted, strict=True)
    )
