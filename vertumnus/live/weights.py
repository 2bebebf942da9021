"""A model's weights by HF's names: drawn from a seed, the same on every rank, or read from files."""

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.live.config import ModelConfig
from vertumnus.live.models.qwen3 import Qwen3, weight_shapes

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""The torch type of each `ModelConfig.dtype`."""

_HEAD_SCALE = 2.0
"""Standard deviation of the random model's logits: the best two differ by 0.4 (median)."""
_SHARPNESS = 1.25
"""Mean weight of the q and k norms: attention scores spread enough for single keys to matter."""


def build_model(config: ModelConfig, weights: Path | None, seed: int, device: torch.device) -> Qwen3:
    """Return the model on *device*, its weights read from the directory *weights* or drawn from *seed*.

    Raises ConfigError with every problem of the files.
    """
    state = random_weights(config, seed) if weights is None else load_weights(config, weights)
    return Qwen3(config, {name: tensor.to(device) for name, tensor in state.items()})


def random_weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Return weights that depend on *config* and *seed* alone, scaled so that signals keep their size."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: _draw(name, shape, generator).to(DTYPES[config.dtype])
        for name, shape in weight_shapes(config).items()
    }


def _draw(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    noise = torch.randn(shape, generator=generator)
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        return _SHARPNESS + 0.1 * noise
    if name.endswith("norm.weight"):
        return 1.0 + 0.1 * noise
    if name == "model.embed_tokens.weight":
        return noise
    scale = _HEAD_SCALE if name == "lm_head.weight" else 1.0
    return noise * (scale / math.sqrt(shape[-1]))


def load_weights(config: ModelConfig, directory: Path) -> dict[str, Tensor]:
    """Read the safetensors files of *directory*, converted to the config's dtype.

    Raises ConfigError when there are none, one cannot be read, or names or shapes are not the model's.
    """
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise ConfigError(f"backend.weights: no *.safetensors files in {directory}")
    state = {name: tensor for file in files for name, tensor in _read(file)}
    problems = list(_problems(config, state))
    if problems:
        raise ConfigError(*problems)
    return {name: state[name].to(DTYPES[config.dtype]) for name in weight_shapes(config)}


def _read(file: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        with safe_open(file, framework="pt") as tensors:
            yield from ((name, tensors.get_tensor(name)) for name in tensors.keys())  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ConfigError(f"backend.weights: cannot read {file}: {error}") from error


def _problems(config: ModelConfig, state: dict[str, Tensor]) -> Iterator[str]:
    expected = weight_shapes(config)
    for name, shape in expected.items():
        if name not in state:
            yield f"backend.weights: {name} is missing; model {config.name} needs it with shape {list(shape)}"
        elif state[name].shape != shape:
            yield (
                f"backend.weights: {name} has shape {list(state[name].shape)}, "
                f"model {config.name} needs {list(shape)}"
            )
    ignored = {"lm_head.weight"} if config.tied_embeddings else set()  # files may spell the tie out
    for name in sorted(state.keys() - expected.keys() - ignored):
        yield (
            f"backend.weights: {name} is not a weight of a dense Qwen3 model with "
            f"{counted(config.layers, 'layer')}"
        )
