"""The sweep that an experiment declares: multiplied out with -m, never a part of a run's config."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from vertumnus.cli import main
from vertumnus.commandline.declared import declared_jobs
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.commandline.hydra_configs import hydra_configs
from vertumnus.commandline.jobs import composed_jobs
from vertumnus.commandline.overrides import job_words
from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError

EXPERIMENT = """\
# @package _global_
# For a test.
defaults:
  - override /backend: sim
name: trial
sweep:
  - policy: [paper, least_loaded]
    seed: [0, 1]
  - policy: round_robin
    cluster.composition: [{2: 20}, {2: 18, 4: 1}]
    seed: [0, 1]
"""


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with an experiment that declares a sweep of eight."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    (tmp_path / "conf" / "experiment" / "trial.yaml").write_text(EXPERIMENT)


def configs(*words: str) -> list[RunConfig]:
    """Return the configs of the jobs of ``vertumnus WORDS -m``."""
    with hydra_configs() as loader:
        jobs = composed_jobs(job_words(words, loader, True), loader, is_sweep=True)
    assert [job.problems for job in jobs if job.problems] == []
    return [job.config for job in jobs if job.config is not None]


@pytest.mark.usefixtures("trial")
def test_every_block_is_multiplied_out() -> None:
    """2 policies x 2 seeds, then one policy on 2 compositions x 2 seeds."""
    found = configs("+experiment=trial")
    assert [config.seed for config in found] == [0, 1] * 4
    kinds = [type(config.policy).__struct_config__.tag for config in found]
    assert kinds == ["paper"] * 2 + ["least_loaded"] * 2 + ["round_robin"] * 4
    assert [config.cluster.composition for config in found[4:]] == [{2: 20}] * 2 + [{2: 18, 4: 1}] * 2


@pytest.mark.usefixtures("trial")
def test_what_is_typed_takes_an_axis_and_leaves_what_a_block_fixes() -> None:
    """One seed and another policy: the first block follows, the second keeps its own policy, once."""
    found = configs("+experiment=trial", "policy=paper,homo", "seed=7", "cluster.composition={2: 20}")
    kinds = [type(config.policy).__struct_config__.tag for config in found]
    assert kinds == ["paper", "round_robin", "homo"]
    assert {config.seed for config in found} == {7}


@pytest.mark.usefixtures("trial")
def test_what_is_typed_as_a_block_has_it_is_one_job() -> None:
    """A value that the second block fixes, typed beside what both blocks vary: one job, not two alike."""
    assert (
        len(configs("+experiment=trial", "policy=round_robin", "seed=7", "cluster.composition={2: 20}")) == 1
    )


@pytest.mark.usefixtures("trial")
def test_a_composition_typed_out_and_the_cluster_s_own_are_one_job() -> None:
    """A block that spells what another leaves to the cluster's file adds no run of it."""
    own = configs("+experiment=trial", "policy=round_robin", "seed=7")[0].cluster.composition
    sweep = f"sweep: [{{seed: [7]}}, {{cluster.composition: [{dict(own)}], seed: 7}}]\n"
    Path("conf/experiment/trial.yaml").write_text(EXPERIMENT.partition("sweep:")[0] + sweep)
    assert len(configs("+experiment=trial")) == 1


@pytest.mark.usefixtures("trial")
def test_a_single_run_says_that_there_is_a_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    """Without -m the experiment is one run, with the keys of its file; the config shows no sweep."""
    assert main(["+experiment=trial", "workload.requests=50", "--dry-run"]) == OK
    out, err = capsys.readouterr()
    assert out.startswith("trial: ") and "this experiment declares a sweep of 8 runs; -m runs them all" in err
    assert main(["+experiment=trial", "seed=-1"]) == BAD_INPUT
    assert capsys.readouterr().err.startswith("error: seed:"), "what is wrong comes first"
    assert main(["+experiment=trial", "--cfg", "job"]) == OK
    assert "sweep" not in yaml.safe_load(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ("[]", "sweep: found no block"),
        ("[3]", "sweep[0]: found 3, must be a mapping from a key to its values"),
        ("{seed: []}", "sweep[0].seed: found an empty list, must have a value"),
        ("[{seed: [0]}, {}]", "sweep[1]: found {}, must be a mapping"),
        ("{policy: [papr]}", "policy=papr: no such policy; did you mean paper?"),
        ("{polcy: [paper]}", "polcy: unknown key; did you mean policy?"),
        ("{seed: [-1, 0]}", "job 1 (seed=-1): seed: found -1, must be at least 0"),
    ],
)
@pytest.mark.usefixtures("trial")
def test_a_bad_declaration_is_named(sweep: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The block and key, what was found, what is allowed; exit 2."""
    head = EXPERIMENT.partition("sweep:")[0]
    Path("conf/experiment/trial.yaml").write_text(f"{head}sweep: {sweep}\n")
    assert main(["+experiment=trial", "-m", "--dry-run"]) == BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (3, "a=3"),
        (0.5, "a=0.5"),
        (None, "a=null"),
        (True, "a=true"),
        ("plain", "a=plain"),
        ("it's = (2)", r"a='it\'s = (2)'"),
        ({4: 10, "b": [1, None]}, "a={4:10,b:[1,null]}"),
    ],
)
def test_values_are_written_as_they_would_be_typed(value: Any, typed: str) -> None:
    """So that a run's overrides can be typed again."""
    assert declared_jobs({"a": [value]}, ()) == [(typed,)]
    with hydra_configs() as loader:
        assert job_words([f"+{typed}"], loader, False) == [(f"+{typed}",)]


def test_fig_13_compares_every_legal_composition() -> None:
    """40 ranks at degrees 4 and 8 leave six mixtures, which stay; the adaptive runs start as the paper's."""
    found = configs("+experiment=reconfigure", "seed=0")
    fixed = [config for config in found if type(config.controller).__struct_config__.tag == "off"]
    counts = [{4: 10 - 2 * large, 8: large} for large in range(6)]
    assert [dict(config.cluster.initial_composition().counts()) for config in fixed] == [
        {degree: count for degree, count in mixture.items() if count} for mixture in counts
    ]
    adaptive = [config for config in found if config not in fixed]
    assert [config.cluster.composition for config in adaptive] == [{4: 4, 8: 3}] * len(adaptive)
    assert adaptive


def narrowed_words(*only: str) -> list[tuple[str, ...]]:
    """Return the words of the jobs that are left of the trial's eight."""
    with hydra_configs() as loader:
        typed = job_words(["+experiment=trial"], loader, multirun=True)
        return [job.words[1:] for job in composed_jobs(typed, loader, is_sweep=True, only=only)]


@pytest.mark.usefixtures("trial")
def test_a_part_of_a_sweep_is_what_has_the_values() -> None:
    """Of each key one of several values; a job without the key is none; a mapping is one value."""
    assert narrowed_words("policy=paper,round_robin", "seed=1") == [
        ("policy=paper", "seed=1"),
        ("policy=round_robin", "cluster.composition={2:20}", "seed=1"),
        ("policy=round_robin", "cluster.composition={2:18,4:1}", "seed=1"),
    ]
    assert len(narrowed_words("cluster.composition={2:18,4:1}")) == 2
    assert len(narrowed_words()) == 8


@pytest.mark.usefixtures("trial")
@pytest.mark.parametrize(
    ("only", "said"),
    [
        (("policy=papr",), "--only policy=papr: no job has it; there are: paper, least_loaded, round_robin"),
        (("polcy=paper",), "--only polcy=paper: no job has polcy; did you mean policy?"),
        (("policy=paper", "cluster.composition={2:20}"), "no job has all of these"),
    ],
)
def test_a_part_that_is_empty_is_told(only: tuple[str, ...], said: str) -> None:
    """With what there is."""
    with pytest.raises(ConfigError, match=re.escape(said)):
        narrowed_words(*only)


@pytest.mark.usefixtures("trial")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "policy=paper"), "--only: has no effect without -m"),
        (("-m", "--only", "policy"), "--only: found policy, must be KEY=VALUE"),
    ],
)
def test_only_is_for_sweeps(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And names a value."""
    assert main(["+experiment=trial", *words]) == BAD_INPUT
    assert said in capsys.readouterr().err
