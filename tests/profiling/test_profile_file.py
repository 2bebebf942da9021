"""A profile: there and back through its file, what it predicts in each form, and where it is refused."""

import copy
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from tests.support.builders import a_profile
from tests.support.profiles import read_profile
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.commandline.listing import entries
from vertumnus.config import to_run_config, validate
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.prefill_time import Coefficients, DegreeCoefficients
from vertumnus.domain.profile import FormError, ModelProfile
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.run.profiles import OLD_DAYS, profile_line, require_hardware
from vertumnus_profiling.profile_file import profile_name, to_yaml, write_profile

HARDWARE = "AMD EPYC 7B13 64-Core Processor, 2 cores, one thread for each rank"


def measured(**changes: object) -> ModelProfile:
    """A profile of tiny as the profiler would make it, *changes* aside."""
    profile = structs.replace(
        a_profile((1, 2)),
        model="tiny",
        hardware=HARDWARE,
        provenance="measured with care: 48 points, 3 of them disturbed; kappa simulated, 90% attainment. "
        * 3,
        kv_bytes_per_token=MODEL_PRESETS["tiny"].kv_bytes_per_token,
        dtype="float32",
        block_tokens=32,
        measured_at="2030-01-31",
        cores=2,
        form="per_degree",
        published=Coefficients(0.012, 1.2e-5, 1e-6, 1e-4, 1e-8),
        per_degree={
            1: DegreeCoefficients(0.01, 1.1e-4, 1e-6, 1e-8),
            2: DegreeCoefficients(0.02, 6e-5, 0.0, 5e-9),
        },
        cpu=Coefficients(0.009, 1e-5, 1e-6, 9e-5, 1e-8),
        clocks={1: "wall", 2: "wall"},
        capacity={1: {2: 0.5, 4: 0.61}, 2: 0.7},
        capacity_provenance="simulated, pools of 2, 4 workers of one degree",
        errors=tuple(
            FormError(form="per_degree", degree=c, points=24, mean=0.03 * c, p50=0.02, p90=0.05 * c, p99=0.2)
            for c in (1, 2)
        ),
    )
    return structs.replace(profile, provenance=profile.provenance.strip(), **changes)


def test_a_profile_comes_back_from_its_file(tmp_path: Path) -> None:
    """Every field, numbers to six digits; the text is lines that people can read."""
    path = tmp_path / "profile" / "tiny-here.yaml"
    write_profile(path, measured())
    assert read_profile(path) == measured()
    lines = path.read_text().splitlines()
    assert "model: tiny" in lines and "  1: {2: 0.5, 4: 0.61}" in lines and "  2: 0.7" in lines
    assert max(map(len, lines)) <= 130
    assert "0.0123457," in to_yaml(
        structs.replace(measured(), published=Coefficients(0.0123456789, 0, 0, 0, 0))
    )


def test_every_field_has_its_place_in_the_file() -> None:
    """A new field cannot be forgotten: what is known is written."""
    text = to_yaml(measured())
    assert [name for name in ModelProfile.__struct_fields__ if f"\n{name}:" not in text] == []


def test_names_are_short_and_typed_without_quotes() -> None:
    """Trademarks and clock rates go, the cores stay."""
    intel = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz, 88 cores, one thread for each rank"
    assert profile_name("tiny", HARDWARE) == "tiny-amd-epyc-7b13-64-core-2-cores"
    assert profile_name("Big Model", intel) == "big-model-intel-xeon-platinum-8481c-88-cores"
    assert profile_name("m", "NVIDIA H20, one for each rank") == "m-nvidia-h20"


@pytest.fixture
def users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a measured profile in its ./conf."""
    monkeypatch.chdir(tmp_path)
    write_profile(tmp_path / "conf" / "profile" / "mine.yaml", measured())
    return tmp_path


def tree_of(*words: str) -> dict[str, Any]:
    """The plain config that *words* compose."""
    with hydra_configs():
        return plain_tree(composed(words))


@pytest.fixture(scope="module")
def live_tree() -> dict[str, Any]:
    """The live config, to which tests add a profile."""
    return tree_of("model=tiny")


def with_profile(tree: dict[str, Any], **changes: object) -> dict[str, Any]:
    """*tree* with the measured profile and each dotted key (dots as two underscores) changed."""
    changed = copy.deepcopy(tree) | {"profile": msgspec.to_builtins(measured(), str_keys=True)}
    for key, value in changes.items():
        *groups, last = key.split("__")
        place = changed
        for group in groups:
            place = place[group]
        place[last] = value
    return changed


def test_a_run_finds_it_by_name(users_folder: Path) -> None:
    """``profile=mine`` on the live backend is the profile, calibration then being off; ``ls`` shows it."""
    config = to_run_config(tree_of("profile=mine", "model=tiny"))
    assert config.profile == measured() and validate(config) == []
    (entry,) = (entry for entry in entries("profile") if entry.name == "mine")
    assert entry.purpose.startswith("tiny at CP 1/2, measured 2030-01-31 on AMD EPYC 7B13")


def test_a_log_s_config_brings_it_back(live_tree: dict[str, Any]) -> None:
    """Through JSON, where the degrees are text, as a log's header has it."""
    config = to_run_config(with_profile(live_tree))
    assert config.profile == measured()
    tree = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(config, str_keys=True)))
    assert to_run_config(tree) == config


NANO = msgspec.to_builtins(MODEL_PRESETS["nano"])
SIM = {"kind": "sim", "noise_sigma": 0.0}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"model": NANO},
            "profile.model: found tiny, but the ranks compute nano (model.name); measure it with",
        ),
        ({"model__dtype": "bfloat16"}, "profile.dtype: found float32, but model.dtype is bfloat16"),
        ({"model__layers": 8}, "profile.kv_bytes_per_token: found 2048, but this tiny has 4096"),
        (
            {"workload__token_scale": 1.0},
            "profile.block_tokens: found 32, but this workload has blocks of 512",
        ),
        ({"cluster__degrees": [1, 2, 4]}, "cluster.degrees: found 4, profile tiny on AMD EPYC"),
        (
            {"backend__calibration__enabled": True},
            "backend.calibration.enabled=true would measure over it",
        ),
        (
            {"backend": SIM, "model": None, "workload__token_scale": 1.0},
            "profile.block_tokens: found 32",
        ),
        ({"profile__schema_version": 2}, "profile.schema_version: must be 1 for this version, got 2"),
        (
            {"profile__form": "published", "profile__published": None},
            "profile.form: must be one whose coefficients are here, got published without any",
        ),
        ({"profile__measured_at": "soon"}, "profile.measured_at: must be a date as 2026-01-31, got soon"),
        ({"profile__capacity": {2: 0.0}}, "profile.capacity.2: must be above 0, got 0"),
        ({"profile__decode_step_s": -0.1}, "profile.decode_step_s: must be a finite number of seconds >= 0"),
        ({"profile__kv_bytes_per_token": 0}, "profile.kv_bytes_per_token: must be at least 1, got 0"),
    ],
)
def test_a_profile_of_something_else_is_refused(
    live_tree: dict[str, Any], changes: dict[str, object], problem: str
) -> None:
    """What the profile was made for, what the run has, and what to do."""
    with pytest.raises(ConfigError) as caught:
        to_run_config(with_profile(live_tree, **changes))
    assert any(problem in line for line in caught.value.problems), caught.value.problems


def test_other_hardware_is_refused() -> None:
    """The same processor with other cores is other hardware."""
    require_hardware(measured(), HARDWARE)
    with pytest.raises(ConfigError, match=r"profile\.hardware: found .* but this run computes on .*8 cores"):
        require_hardware(measured(), HARDWARE.replace("2 cores", "8 cores"))


@pytest.mark.parametrize(
    ("today", "age"),
    [
        (date(2030, 1, 31), "measured today (2030-01-31)"),
        (date(2030, 2, 1), "measured 1 day ago (2030-01-31)"),
        (date(2030, 1, 30), "measured today (2030-01-31)"),
        (
            date(2030, 3, 5),
            "measured 33 days ago (2030-01-31), which is long ago: do its numbers still hold?",
        ),
    ],
)
def test_a_run_says_how_old_its_profile_is(today: date, age: str) -> None:
    """Age, form and its worst held-out error in the line that a run starts with."""
    assert OLD_DAYS <= 33
    line = profile_line(measured(), today)
    assert age in line
    assert line.endswith("per-degree form, held-out error at most 6.0% mean, 10.0% P90 (CP2)")
    preset = a_profile()
    assert profile_line(preset, today).endswith(f": log2(C) form; {preset.provenance}") and preset.provenance


def test_the_form_decides_what_is_predicted() -> None:
    """E_2(100, 10) in ns by hand: own 20 + 6, published 12 + 1.2 + 0.01 + 5, with g 10 + 2 more ms."""
    pairs = 100 * 10 + 100 * 101 // 2
    own = 0.02 + 100 * 6e-5 + pairs * 5e-9
    published = 0.012 + 100 * 1.2e-5 + 10 * 1e-6 + (100 * 1e-4 + pairs * 1e-8) / 2
    log2 = 0.01 + 0.002 + 100 * 1e-5 + 10 * 1e-6 + (100 * 1e-4 + pairs * 1e-8) / 2
    for form, seconds in (("per_degree", own), ("published", published), ("log2", log2)):
        found = measured(form=form).prefill_time().predict(2, 100, 10)
        assert found == pytest.approx(seconds * 1e9, abs=1), form


def test_a_degree_without_a_fit_of_its_own_takes_the_shared_one() -> None:
    """Degree 4 was not measured: it is predicted by the form with g."""
    profile = measured(degrees=(1, 2, 4))
    assert profile.prefill_time().predict(4, 100, 0) == a_profile().prefill_time().predict(4, 100, 0)
    assert profile.prefill_time().predict(2, 100, 0) != a_profile().prefill_time().predict(2, 100, 0)


def test_a_preset_knows_little_and_says_so() -> None:
    """No date, no CPU time, no capacity: None, never a number."""
    preset = a_profile()
    assert (preset.age_days(date(2030, 1, 1)), preset.cpu_time(), preset.capacity) == (None, None, None)
    assert preset.error("log2", 1) is None
    found = measured().error("per_degree", 2)
    assert found is not None and found.p90 == 0.1
