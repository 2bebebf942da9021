"""What the live engine's configs refuse, and that reading them does not cost an import of torch."""

import subprocess
import sys

import msgspec
import pytest

from vertumnus.live.config import MODEL_PRESETS, LiveConfig, ModelConfig

TINY = msgspec.to_builtins(MODEL_PRESETS["tiny"])


def test_kv_sizes_by_hand() -> None:
    """Tiny keeps keys and values of 2 heads of 32 in 4 layers of float32: 2,048 bytes a token."""
    tiny = MODEL_PRESETS["tiny"]
    assert tiny.kv_width_per_token == 2 * 2 * 32
    assert tiny.kv_bytes_per_token == 4 * 128 * 4
    assert msgspec.structs.replace(tiny, dtype="bfloat16").kv_bytes_per_token == 1_024


def test_presets_go_from_small_to_large_by_name() -> None:
    """Each preset is found under its own name."""
    assert [(name, model.name, model.hidden_size) for name, model in MODEL_PRESETS.items()] == [
        ("nano", "nano", 128),
        ("tiny", "tiny", 256),
        ("small", "small", 512),
        ("med", "med", 1_024),
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"query_heads": 7}, "query_heads must be a multiple of kv_heads = 2, got 7"),
        ({"kv_heads": 0}, "kv_heads must be at least 1, got 0"),
        ({"head_dim": 33}, "head_dim must be even and at least 2, got 33"),
        ({"vocab_size": 1}, "vocab_size must be at least 2, got 1"),
        ({"rope_theta": 1.0}, "rope_theta must be greater than 1, got 1.0"),
        ({"norm_eps": 0.0}, "norm_eps must be greater than 0, got 0.0"),
        ({"max_position": 0}, "max_position must be at least 1, got 0"),
        ({"dtype": "float16"}, r"Invalid enum value 'float16' - at `\$.dtype`"),
        ({"heads": 8}, "unknown field `heads`"),
    ],
)
def test_a_model_that_cannot_be_is_refused(change: dict[str, object], problem: str) -> None:
    """The message names the field, the value and the bound."""
    with pytest.raises(msgspec.ValidationError, match=problem):
        msgspec.convert({**TINY, **change}, ModelConfig)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"device": "tpu"}, "Invalid enum value 'tpu'"),
        ({"transport": "rdma"}, "Invalid enum value 'rdma'"),
        ({"start_timeout_s": 0.0}, "start_timeout_s must be a finite number of seconds > 0, got 0.0"),
        ({"step_timeout_s": float("inf")}, "step_timeout_s must be a finite number of seconds > 0, got inf"),
        ({"calibration": {"repeats": 0}}, r"repeats must be at least 1, got 0 - at `\$.calibration`"),
        ({"calibration": {"points": []}}, "points must not be empty when enabled"),
        ({"calibration": {"points": [[0, 8]]}}, r"uncached >= 1 and cached >= 0 tokens, got \[0, 8\]"),
    ],
)
def test_a_backend_that_cannot_be_is_refused(change: dict[str, object], problem: str) -> None:
    """The message names the field, the value and the bound."""
    with pytest.raises(msgspec.ValidationError, match=problem):
        msgspec.convert({"kind": "live", **change}, LiveConfig)


def test_reading_the_config_does_not_import_torch() -> None:
    """The command line reads it for simulated runs, too, where torch may be missing."""
    program = "import sys, vertumnus.live.config; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
