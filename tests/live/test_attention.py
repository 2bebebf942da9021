"""Attention in parts: kernels agree with plain products, and parts merge to the whole."""

import random
import sys
from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vertumnus.live import attention
from vertumnus.live.attention import (
    CpuFlashKernel,
    CudaFlashKernel,
    Kernel,
    Partial,
    PlainKernel,
    attend_chunk,
    choose_kernel,
    is_sound,
    merge,
)

CPU = torch.device("cpu")
QUERY_HEADS, KV_HEADS, HEAD_DIM = 8, 2, 32
TOLERANCE = 2e-6


def draw(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return q [queries, N, D] and views k, v [keys, K, D] of one row per token, as stores keep them."""
    generator = torch.Generator().manual_seed(queries * 10_000 + keys)
    q = torch.randn(queries, QUERY_HEADS, HEAD_DIM, generator=generator)
    rows = torch.randn(keys, 2, KV_HEADS, HEAD_DIM, generator=generator)
    return q, rows[:, 0], rows[:, 1]


def textbook(q: Tensor, k: Tensor, v: Tensor, first_position: int) -> Tensor:
    """Return softmax(q k / sqrt(D)) v in float64, query t seeing keys up to first_position + t."""
    group = q.shape[1] // k.shape[1]
    k, v = (part.double().repeat_interleave(group, dim=1) for part in (k, v))
    scores = torch.einsum("tnd,snd->nts", q.double(), k) / HEAD_DIM**0.5
    positions = torch.arange(len(q))[:, None] + first_position
    scores = scores.masked_fill(torch.arange(len(k))[None] > positions, float("-inf"))
    return torch.einsum("nts,snd->tnd", scores.softmax(-1), v)


@pytest.mark.parametrize("kernel", [PlainKernel(), CpuFlashKernel()], ids=["plain", "flash"])
@pytest.mark.parametrize(("start", "queries"), [(0, 1), (0, 65), (1, 1), (7, 300), (513, 40)])
def test_a_chunk_equals_the_textbook(kernel: Kernel, start: int, queries: int) -> None:
    """Full on [0, s) and causal on [s, e), merged, is causal attention at positions s .. e - 1."""
    q, k, v = draw(queries, start + queries + 3)  # three keys of the future, which must not count
    found = attend_chunk(kernel, q, k, v, start)
    assert float((found.out_TND - textbook(q, k, v, start)).abs().max()) <= TOLERANCE


@settings(max_examples=30, deadline=None)  # the first call of a kernel is slow
@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_parts_merge_in_any_order(sizes: list[int], order: random.Random) -> None:
    """Attention over disjoint pieces of the keys merges to attention over all of them."""
    q, k, v = draw(3, sum(sizes))
    kernel = CpuFlashKernel()
    pieces = list(zip(k.split(sizes), v.split(sizes), strict=True))
    order.shuffle(pieces)
    merged: Partial | None = None
    for k_piece, v_piece in pieces:
        part = kernel.full(q, k_piece, v_piece)
        merged = part if merged is None else merge(merged, part)
    whole = kernel.full(q, k, v)
    assert merged is not None
    assert float((merged.out_TND - whole.out_TND).abs().max()) <= TOLERANCE
    assert float((merged.lse_TN - whole.lse_TN).abs().max()) <= TOLERANCE


def test_log_sum_exp_is_natural_and_by_query_and_head() -> None:
    """One key: the log-sum-exp is its scaled score, the output is its value."""
    q, k, v = draw(4, 1)
    for kernel in (PlainKernel(), CpuFlashKernel()):
        part = kernel.full(q, k, v)
        scores = torch.einsum("tkgd,kd->tkg", q.view(4, KV_HEADS, -1, HEAD_DIM), k[0]) / HEAD_DIM**0.5
        assert torch.allclose(part.lse_TN, scores.flatten(1), atol=TOLERANCE)
        assert torch.allclose(
            part.out_TND.view(4, KV_HEADS, -1, HEAD_DIM), v[0].unsqueeze(1).expand(4, -1, 4, -1)
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_flash_passes_its_self_test_here(dtype: torch.dtype) -> None:
    """With the torch of this environment the fast kernel is the one in use."""
    assert isinstance(choose_kernel(CPU, dtype), CpuFlashKernel)


class _Base2Kernel(CpuFlashKernel):
    def full(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor) -> Partial:
        part = super().full(q_TND, k_SKD, v_SKD)
        return Partial(part.out_TND, part.lse_TN / 0.6931)


class _BottomRightKernel(CpuFlashKernel):
    def causal(self, q_TND: Tensor, k_TKD: Tensor, v_TKD: Tensor) -> Partial:
        return super().full(q_TND, k_TKD, v_TKD)


class _GoneKernel(CpuFlashKernel):
    def full(self, q_TND: Tensor, k_SKD: Tensor, v_SKD: Tensor) -> Partial:
        raise AttributeError("no such op")


@pytest.mark.parametrize("broken", [_Base2Kernel, _BottomRightKernel, _GoneKernel])
def test_a_kernel_that_changed_is_not_used(
    broken: type[CpuFlashKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another LSE base, another mask or a missing op each send the engine back to plain products."""
    monkeypatch.setattr(attention, "CpuFlashKernel", broken)
    assert isinstance(choose_kernel(CPU, torch.float32), PlainKernel)


class _FlashAttn(ModuleType):
    """flash-attn's call as it is documented (2.8), by plain products: batches, LSE as [B, N, T]."""

    @staticmethod
    def flash_attn_func(
        q_BTND: Tensor,
        k_BSKD: Tensor,
        v_BSKD: Tensor,
        dropout_p: float = 0.0,
        softmax_scale: float | None = None,
        causal: bool = False,
        *,
        return_attn_probs: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor, Tensor | None]:
        assert dropout_p == 0.0 and softmax_scale is None
        attend = PlainKernel().causal if causal else PlainKernel().full
        parts = [attend(*one) for one in zip(q_BTND, k_BSKD, v_BSKD, strict=True)]
        out_BTND = torch.stack([part.out_TND for part in parts])
        if not return_attn_probs:
            return out_BTND
        return out_BTND, torch.stack([part.lse_TN.t() for part in parts]), None


def test_what_flash_attn_returns_is_read_as_it_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the call's documented form: that the package keeps to it is tested where it runs."""
    monkeypatch.setitem(sys.modules, "flash_attn", _FlashAttn("flash_attn"))
    assert is_sound(CudaFlashKernel(), CPU, torch.bfloat16)


@pytest.mark.gpu
def test_flash_attn_agrees_with_plain_products() -> None:
    """On CUDA with bfloat16 flash-attn gives plain products' values and log-sum-exp."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    pytest.importorskip("flash_attn")
    assert is_sound(CudaFlashKernel(), torch.device("cuda"), torch.bfloat16)
