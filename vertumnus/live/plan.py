"""What every process of a live run has in common, settled and checked before any of them starts."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing
from vertumnus.domain.units import Rank, Tokens
from vertumnus.domain.wording import counted
from vertumnus.live.config import LiveConfig, ModelConfig
from vertumnus.live.machine import available_memory_bytes
from vertumnus.workers.config import ClusterConfig

RESERVE_BYTES = 256 << 20
"""Left free on the machine besides the KV stores: a rank's own buffers during a step."""


class LivePlan(Struct, frozen=True, kw_only=True):
    """One run's ranks, model and memory; travels to every rank in its Welcome."""

    model: ModelConfig
    live: LiveConfig
    device: Literal["cpu", "cuda"]
    transport: Literal["shared", "pairwise"]
    lattice: Lattice
    workers: tuple[CpGroup, ...]
    """The first composition."""
    decode_ranks: int
    decode_tokens: Tokens
    """KV capacity of one decode rank [tokens]."""
    blocks_per_rank: int
    block_tokens: Tokens
    seed: int
    """Draws the weights where none are given."""

    @property
    def store_bytes(self) -> int:
        """One prefill rank's KV store [bytes]."""
        return self.blocks_per_rank * self.block_bytes

    @property
    def block_bytes(self) -> int:
        """KV of one block [bytes]."""
        return self.block_tokens * self.model.kv_bytes_per_token

    @property
    def weights_path(self) -> Path | None:
        """Directory of the weights; None when they are drawn."""
        return None if self.live.weights is None else Path(self.live.weights)

    def worker_of(self, rank: Rank) -> CpGroup:
        """Return the worker that prefill *rank* belongs to in the first composition."""
        return next(worker for worker in self.workers if rank in worker.ranks)


def make_plan(
    model: ModelConfig, live: LiveConfig, cluster: ClusterConfig, block_tokens: Tokens, seed: int
) -> LivePlan:
    """Settle a run's ranks, device and transport.

    Raises ConfigError with every problem: packages that are missing, a device or transport that this
    machine cannot give, a composition that does not fit, no weights, too little memory for KV.
    """
    composition = cluster.initial_composition()
    require_packages()
    _require_weights(live)
    device = _device(live, cluster.gpus + cluster.decode.ranks)
    plan = LivePlan(
        model=model,
        live=live,
        device=device,
        transport=_transport(live, device),
        lattice=cluster.lattice,
        workers=composition.workers,
        decode_ranks=cluster.decode.ranks,
        decode_tokens=cluster.decode.tokens_per_rank,
        blocks_per_rank=cluster.blocks_per_rank,
        block_tokens=block_tokens,
        seed=seed,
    )
    _require_memory(plan)
    return plan


def require_packages() -> None:
    """Raise ConfigError when a package of the live engine is not installed."""
    missing = [name for name in ("torch", "zmq", "scipy") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"backend: the live engine needs {', '.join(missing)}, not installed here; "
            f"{installing('live')}, or choose backend=sim"
        )


def _require_weights(live: LiveConfig) -> None:
    """Raise ConfigError when there is nothing to read; each rank checks what it reads."""
    if live.weights is not None and not any(Path(live.weights).glob("*.safetensors")):
        raise ConfigError(f"backend.weights: no *.safetensors files in {live.weights}")


def _device(live: LiveConfig, ranks: int) -> Literal["cpu", "cuda"]:
    if live.device == "cpu":
        return "cpu"
    import torch  # here, not on top: a plan for the CPU is made without paying for torch

    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if devices >= ranks:
        return "cuda"
    if live.device == "cuda":
        raise ConfigError(
            f"backend.device: found cuda, but this machine has {counted(devices, 'CUDA device')} "
            f"for {counted(ranks, 'rank')} (cluster.gpus + cluster.decode.ranks); "
            "allowed: cpu, auto, or fewer ranks"
        )
    return "cpu"


def _transport(live: LiveConfig, device: str) -> Literal["shared", "pairwise"]:
    if live.transport != "auto":
        if live.transport == "shared" and device == "cuda":
            raise ConfigError(
                "backend.transport: found shared, but KV on CUDA devices is not in host memory; "
                "allowed: pairwise, auto"
            )
        return live.transport
    return "shared" if device == "cpu" else "pairwise"


def _require_memory(plan: LivePlan) -> None:
    """Raise ConfigError when the KV stores of all ranks do not fit this machine's memory."""
    if plan.device == "cuda":
        return  # each rank's own device answers for that at start
    prefill = plan.lattice.gpus * plan.store_bytes
    decode = plan.decode_ranks * plan.decode_tokens * plan.model.kv_bytes_per_token
    available = available_memory_bytes()
    if prefill + decode + RESERVE_BYTES > available:
        raise ConfigError(
            f"cluster.blocks_per_rank, cluster.decode.tokens_per_rank: the KV stores need "
            f"{_mib(prefill)} (prefill) + {_mib(decode)} (decode) + {_mib(RESERVE_BYTES)} of working room, "
            f"but {_mib(available)} of memory are available"
        )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.0f} MiB"
