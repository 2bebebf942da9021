"""Bad input is refused before any process starts, with key, value and what is allowed."""

from pathlib import Path

import pytest

from tests.support.live_driver import a_cluster
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.live import plan as planning
from vertumnus.live.config import MODEL_PRESETS, LiveConfig
from vertumnus.live.plan import LivePlan, make_plan
from vertumnus.live.shared_map import nameless_file

NANO = MODEL_PRESETS["nano"]


def planned(**live: object) -> LivePlan:
    """A plan for the default cluster."""
    return make_plan(NANO, LiveConfig(**live), a_cluster(), 16, 0)  # type: ignore[arg-type]


def test_cpu_plan_shares_memory() -> None:
    """On the CPU the KV of one host is shared; store bytes are blocks x tokens x KV bytes of a token."""
    plan = planned(device="cpu")
    assert (plan.device, plan.transport) == ("cpu", "shared")
    assert plan.store_bytes == 128 * 16 * (2 * 2 * 2 * 32 * 4)
    assert plan.worker_of(1) == CpGroup(0, 2)


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what the stores need and what there is."""
    monkeypatch.setattr(planning, "available_memory_bytes", lambda: 257 << 20)
    with pytest.raises(ConfigError, match=r"8 MiB \(prefill\) \+ 4 MiB \(decode\) .* 257 MiB of memory"):
        planned(device="cpu")


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch the message says how to install it, and that the simulator needs none."""
    monkeypatch.setattr(planning, "find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(ConfigError, match=r"needs torch, .*pip install 'vertumnus\[live\]'"):
        planned(device="cpu")


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    """A directory without safetensors files is named before ranks start."""
    with pytest.raises(ConfigError, match=r"backend\.weights: no \*\.safetensors files in "):
        planned(device="cpu", weights=str(tmp_path / "gone"))


def test_cuda_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for CUDA where there are fewer devices than ranks names both numbers."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ConfigError, match="0 CUDA devices for 5 ranks"):
        planned(device="cuda")


def test_devices_decide_where_ranks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto takes CUDA when every rank gets a device, and then moves KV by messages."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 5)
    assert (planned().device, planned().transport) == ("cuda", "pairwise")
    with pytest.raises(ConfigError, match=r"backend\.transport: found shared"):
        planned(transport="shared")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert planned().device == "cpu"


def test_map_needs_a_directory(tmp_path: Path) -> None:
    """A shared_dir that is not there is named with the system's reason."""
    with pytest.raises(ConfigError, match=r"shared_dir: cannot write in .*gone: No such file"):
        nameless_file(tmp_path / "gone", 4_096)


def test_map_has_no_name(tmp_path: Path) -> None:
    """A map takes its room at once and leaves nothing in its directory, open or closed."""
    with nameless_file(tmp_path, 1 << 20) as file:
        assert list(tmp_path.iterdir()) == []
        assert file.seek(0, 2) == 1 << 20
    assert list(tmp_path.iterdir()) == []


def test_map_that_does_not_fit(tmp_path: Path) -> None:
    """More bytes than the file system has are refused when the map is made, not in the middle of a step."""
    with pytest.raises(ConfigError, match="has no room for a KV map of"):
        nameless_file(tmp_path, 1 << 50)
