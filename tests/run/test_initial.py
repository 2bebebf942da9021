"""The first composition of a run: chosen before it starts, recorded as chosen, replayed as recorded."""

from io import StringIO
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from vertumnus.cli import main
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.capacity import pool_rate
from vertumnus.run.execute import execute
from vertumnus.run.initial import settled
from vertumnus.run.plan import plan
from vertumnus.run.stream import load_stream
from vertumnus.trace.history import GivenComposition

SMALL = ("+experiment=tool_agent", "backend=sim", "workload.requests=300")
QUIET = Console(file=StringIO())


def a_config(*words: str) -> RunConfig:
    """The config of a short simulated run."""
    with hydra_configs():
        return to_run_config(plain_tree(composed((*SMALL, *words))))


def test_a_given_composition_stays_as_it_is() -> None:
    """Nothing is read, nothing changes."""
    config = a_config()
    assert settled(config, QUIET) is config


def test_little_demand_starts_large_and_much_demand_small() -> None:
    """The same requests at 5 and at 60 req/s: more small workers at the higher rate, always 40 GPUs."""
    small_at = {}
    for rate in (5, 60):
        config = settled(a_config("initial=other_seed", f"arrival.rate={rate}"), QUIET)
        small_at[rate] = config.cluster.composition.get(2, 0)
        assert sum(degree * n for degree, n in config.cluster.composition.items()) == 40
    assert small_at[5] < small_at[60]


def test_what_is_recorded_is_the_choice(tmp_path: Path) -> None:
    """Folder and log hold the composition and why; the replay is exact; settling it again changes nothing."""
    words = ("initial=other_seed", "initial.seed=5", f"runs_dir={tmp_path}")
    narrated = Console(file=StringIO(), width=200)
    outcome = execute(a_config(*words), Asked(words), narrated)
    assert outcome.verdict == "VALID"
    run = RunDir(tmp_path / outcome.run_id)
    header, records = read_log(run.log)
    assert sum(1 for _ in records) > 300
    recorded = to_run_config(header.config)
    assert isinstance(recorded.initial, GivenComposition)
    assert recorded.initial.reason.startswith(
        f"{header.composition}, chosen for tool_agent generator, seed 5"
    )
    assert recorded.cluster.initial_composition() == header.composition
    assert settled(recorded, QUIET) is recorded
    assert recorded.initial.reason in " ".join(narrated.file.getvalue().split())  # type: ignore[attr-defined]
    assert recorded.initial.reason[:40] in (run.path / "config.yaml").read_text().replace("\n    ", " ")
    assert audit_run(run).is_clean


def test_the_plan_ranks_every_composition() -> None:
    """The chosen one first, eleven legal mixtures of degrees 2 and 4 on 40 GPUs."""
    text = plan(a_config("initial=head", "arrival.rate=10"))
    ranked = [line for line in text.splitlines() if "suitable" in line and "CP" in line and "%" in line]
    ranked = [line for line in ranked if not line.startswith("initial")]
    assert len(ranked) == 11
    assert ranked[0].endswith("suitable (chosen)") and text.count("(chosen)") == 1
    pool = next(line for line in text.splitlines() if line.startswith("pool"))
    assert ranked[0].startswith(pool.partition(": ")[2])


def test_a_load_is_a_share_of_the_composition_in_the_config() -> None:
    """Half of what 8 x CP4 + 4 x CP2 can serve, fixed as a rate whichever composition is chosen."""
    config = a_config("initial=other_seed", "arrival=load")
    assert config.profile is not None
    rate = 0.5 * pool_rate(config, config.profile, load_stream(config))
    arrival = settled(config, QUIET).arrival
    assert (arrival.load, arrival.rate) == (None, pytest.approx(rate))


def test_the_longest_prompt_gets_a_worker_that_holds_it() -> None:
    """Where only degree 4 has the memory, one such worker is there however small the others are."""
    config = a_config("initial=other_seed", "arrival.rate=60")
    longest = max(row.input_tokens for row in load_stream(config).rows)
    blocks = -(-longest // 512) // 4 + 1
    tight = structs.replace(config, cluster=structs.replace(config.cluster, blocks_per_rank=blocks))
    assert settled(tight, QUIET).cluster.composition.get(4, 0) >= 1


BAD = [
    (("initial.share=0.5",), "initial.share: unknown key for initial given"),
    (("initial=hed",), "initial=hed: no such initial; did you mean head?"),
    (("initial=head", "initial.share=0.5"), "initial.share: found 0.5: the run would be sized on requests"),
    (("initial=other_seed", "initial.seed=0"), "initial.seed: found 0, the run's own seed"),
    (("initial=other_trace",), "initial.path: required, but not set"),
    (("initial=other_trace", "initial.path=gone.jsonl"), "initial.path: no file 'gone.jsonl'"),
    (("initial=head", "profile.capacity={4: 0.9}"), "profile.capacity.2: missing, initial needs kappa"),
    (("initial=head", "policy=homo", "cluster=pool40_cp4"), "policy homo needs all workers at one degree"),
    (("initial.name=head",), "initial.name: names which initial the other keys belong to"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_told_before_anything_starts(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2 with key, found and allowed; no folder is made."""
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, *words]) == 2
    out, err = capsys.readouterr()
    assert said in err and "Traceback" not in err
    assert (out, list(tmp_path.iterdir())) == ("", [])


def test_a_live_run_without_a_profile_has_no_capacity() -> None:
    """kappa is not measured at the start of a run."""
    with (
        pytest.raises(ConfigError, match=r"initial: a slice is held against the capacity.*vertumnus profile"),
        hydra_configs(),
    ):
        to_run_config(plain_tree(composed(("+experiment=tool_agent", "initial=head"))))
