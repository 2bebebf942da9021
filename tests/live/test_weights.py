"""Weights: the same from the same seed, HF's names, and files that are told apart when they do not fit."""

from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import save_file

from tests.support.qwen3_reference import hf_model
from vertumnus.domain.errors import ConfigError
from vertumnus.live.config import MODEL_PRESETS, ModelConfig
from vertumnus.live.models.qwen3 import weight_shapes
from vertumnus.live.weights import build_model, load_weights, random_weights

NANO = MODEL_PRESETS["nano"]
TIED = msgspec.structs.replace(NANO, tied_embeddings=True)
CPU = torch.device("cpu")
TOKENS = torch.tensor([3, 500, 77])


def logits_at_position_zero(config: ModelConfig, weights: Path | None, seed: int = 0) -> torch.Tensor:
    """Return logits of one token alone, for which attention returns its value."""
    model = build_model(config, weights, seed, CPU)
    x_TH, positions = model.embed(TOKENS[:1]), torch.zeros(1, dtype=torch.int64)
    for layer in model.layers:
        v_TKD = layer.project(x_TH, positions).v_TKD
        x_TH = layer.finish(x_TH, v_TKD.repeat_interleave(config.query_heads // config.kv_heads, dim=1))
    return model.logits(model.final_norm(x_TH))


@pytest.mark.parametrize("config", [NANO, TIED], ids=["untied", "tied"])
def test_one_token_equals_hf(config: ModelConfig) -> None:
    """The weights load into HF's model under HF's names, with its own head or a tied one."""
    with torch.no_grad():
        wanted = hf_model(config, random_weights(config, 0))(TOKENS[None, :1]).logits[0]
    assert float((logits_at_position_zero(config, None) - wanted).abs().max()) <= 2e-5


def test_seeds_decide() -> None:
    """Every rank draws the same weights from one seed, others from another."""
    first, again, other = (random_weights(NANO, seed) for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in weight_shapes(NANO))
    assert not any(torch.equal(first[name], other[name]) for name in weight_shapes(NANO))


def test_bfloat16_weights_are_the_rounded_ones() -> None:
    """The dtype changes the type and nothing else."""
    wide = random_weights(NANO, 0)
    for name, tensor in random_weights(msgspec.structs.replace(NANO, dtype="bfloat16"), 0).items():
        assert torch.equal(tensor, wide[name].bfloat16())


def test_weights_come_back_from_several_files(tmp_path: Path) -> None:
    """A directory of shards holds one model."""
    items = list(random_weights(NANO, 4).items())
    save_file(dict(items[:9]), tmp_path / "model-00001-of-00002.safetensors")
    save_file(dict(items[9:]), tmp_path / "model-00002-of-00002.safetensors")
    found = logits_at_position_zero(NANO, tmp_path)
    assert torch.equal(found, logits_at_position_zero(NANO, None, seed=4))


def test_a_tied_model_may_spell_its_head_out(tmp_path: Path) -> None:
    """lm_head.weight beside tied embeddings is no error."""
    save_file(random_weights(NANO, 0), tmp_path / "model.safetensors")
    assert load_weights(TIED, tmp_path).keys() == weight_shapes(TIED).keys()


def test_every_misfit_is_told_at_once(tmp_path: Path) -> None:
    """Missing, wrongly shaped and unknown weights are all in one error."""
    state = random_weights(NANO, 0)
    del state["model.norm.weight"]
    state["lm_head.weight"] = torch.zeros(512, 64)
    state["model.layers.0.self_attn.q_proj.bias"] = torch.zeros(128)
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError) as caught:
        load_weights(NANO, tmp_path)
    assert caught.value.problems == (
        "backend.weights: model.norm.weight is missing; model nano needs it with shape [128]",
        "backend.weights: lm_head.weight has shape [512, 64], model nano needs [512, 128]",
        "backend.weights: model.layers.0.self_attn.q_proj.bias is not a weight of a dense Qwen3 model "
        "with 2 layers",
    )


def test_files_that_are_none_are_told(tmp_path: Path) -> None:
    """An empty directory and a file of something else each say so."""
    with pytest.raises(ConfigError, match=r"no \*\.safetensors files in"):
        load_weights(NANO, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(ConfigError, match=r"cannot read .*model\.safetensors"):
        load_weights(NANO, tmp_path)
