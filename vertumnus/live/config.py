"""What a user may set about the live engine and its models; free of torch, so reading it is cheap."""

from typing import Literal

from msgspec import Struct


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The shape of a dense Qwen3 model."""

    name: str
    """What reports call it."""
    hidden_size: int
    """H: width of the residual stream, at least 1."""
    intermediate_size: int
    """Width of the SwiGLU feed-forward layer, at least 1."""
    layers: int
    """Decoder layers, at least 1."""
    query_heads: int
    """N: query heads, a multiple of kv_heads."""
    kv_heads: int
    """K: key and value heads, at least 1."""
    head_dim: int
    """D: size of one head, even (rotary embedding turns pairs)."""
    vocab_size: int
    """Token ids run from 0 to vocab_size - 1; at least 2."""
    rope_theta: float = 1_000_000.0
    """Base of the rotary embedding's wavelengths, greater than 1."""
    norm_eps: float = 1e-6
    """Added to the mean square in RMSNorm, greater than 0."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of weights, activations and KV."""
    max_position: int = 32_768
    """Longest sequence, prompt and output together, at least 1 [tokens]."""
    tied_embeddings: bool = False
    """Whether the output head is the embedding matrix."""

    def __post_init__(self) -> None:
        sizes = ("hidden_size", "intermediate_size", "layers", "query_heads", "kv_heads", "max_position")
        for field in sizes:
            _require(getattr(self, field) >= 1, f"{field} must be at least 1, got {getattr(self, field)}")
        _require(
            self.query_heads % self.kv_heads == 0,
            f"query_heads must be a multiple of kv_heads = {self.kv_heads}, got {self.query_heads}",
        )
        _require(
            self.head_dim >= 2 and self.head_dim % 2 == 0,
            f"head_dim must be even and at least 2, got {self.head_dim}",
        )
        _require(self.vocab_size >= 2, f"vocab_size must be at least 2, got {self.vocab_size}")
        _require(self.rope_theta > 1.0, f"rope_theta must be greater than 1, got {self.rope_theta}")
        _require(self.norm_eps > 0.0, f"norm_eps must be greater than 0, got {self.norm_eps}")

    @property
    def kv_width_per_token(self) -> int:
        """Elements of keys and values that one token keeps in one layer: 2 * K * D."""
        return 2 * self.kv_heads * self.head_dim

    @property
    def kv_bytes_per_token(self) -> int:
        """KV state of one token over all layers [bytes]."""
        return self.layers * self.kv_width_per_token * _DTYPE_BYTES[self.dtype]


_DTYPE_BYTES = {"float32": 4, "bfloat16": 2}

_NANO = ModelConfig(
    name="nano",
    hidden_size=128,
    intermediate_size=384,
    layers=2,
    query_heads=4,
    kv_heads=2,
    head_dim=32,
    vocab_size=512,
)
_TINY = ModelConfig(
    name="tiny",
    hidden_size=256,
    intermediate_size=768,
    layers=4,
    query_heads=8,
    kv_heads=2,
    head_dim=32,
    vocab_size=2_048,
)
_SMALL = ModelConfig(
    name="small",
    hidden_size=512,
    intermediate_size=1_536,
    layers=4,
    query_heads=8,
    kv_heads=2,
    head_dim=64,
    vocab_size=8_192,
)
_MED = ModelConfig(
    name="med",
    hidden_size=1_024,
    intermediate_size=3_072,
    layers=8,
    query_heads=16,
    kv_heads=2,
    head_dim=64,
    vocab_size=16_384,
)

MODEL_PRESETS: dict[str, ModelConfig] = {model.name: model for model in (_NANO, _TINY, _SMALL, _MED)}
"""The models that ship without weights, smallest first."""


class CalibrationConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Measuring this machine's prefill times before a run, instead of trusting a profile's."""

    enabled: bool | None = None
    """Whether the engine measures at start and fits Eq. 2 to that; null measures without a profile only."""
    points: tuple[tuple[int, int], ...] = (
        (64, 0),
        (256, 0),
        (1_024, 0),
        (2_048, 0),
        (256, 1_024),
        (1_024, 1_024),
    )
    """(R, P) pairs measured at every degree: uncached >= 1 and cached >= 0 tokens."""
    repeats: int = 3
    """Times that each point is measured; the fastest counts; at least 1."""

    def __post_init__(self) -> None:
        _require(self.repeats >= 1, f"repeats must be at least 1, got {self.repeats}")
        _require(self.enabled is False or bool(self.points), "points must not be empty when enabled")
        for uncached, cached in self.points:
            _require(
                uncached >= 1 and cached >= 0,
                f"points must be pairs of uncached >= 1 and cached >= 0 tokens, got [{uncached}, {cached}]",
            )


class LiveConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="live", tag_field="kind"):
    """The live engine: ranks are processes that compute."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where ranks compute; auto takes CUDA when there is a device for every rank."""
    transport: Literal["auto", "shared", "pairwise"] = "auto"
    """How KV moves between ranks: shared memory of one host, or messages; auto takes shared on one host."""
    start_timeout_s: float = 60.0
    """Longest wait for all ranks to register, greater than 0 [s]."""
    step_timeout_s: float = 30.0
    """Least time that a rank waits in a collective before the step counts as failed, greater than 0 [s].

    A rank that does not answer to a step for twice as long, or to anything else for as long, is lost.
    """
    weights: str | None = None
    """Directory of safetensors files with the names of HF's Qwen3; null draws seeded random weights."""
    shared_dir: str | None = None
    """Directory of the shared KV maps; null takes /dev/shm when it has room, else the temporary directory."""
    check_memory: bool = False
    """Whether ranks read back what they hold after every copy, deletion, split and merge, and the run fails
    where that and the prefix index disagree; it stands still meanwhile, so its times are no measurement."""
    calibration: CalibrationConfig = CalibrationConfig()
    """Measuring prefill times at start."""

    def __post_init__(self) -> None:
        for field in ("start_timeout_s", "step_timeout_s"):
            seconds = getattr(self, field)
            _require(
                0.0 < seconds < float("inf"),
                f"{field} must be a finite number of seconds > 0, got {seconds}",
            )
