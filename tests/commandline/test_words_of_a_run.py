"""From the words that are typed to the config of a run."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.commands import SIM
from vertumnus.cli import main
from vertumnus.commandline import jobs
from vertumnus.commandline.exit_codes import OK
from vertumnus.config import RunConfig


@pytest.mark.parametrize("words", [("policy.gpu_time_weight=0.3",), ("+policy.gpu_time_weight=0.3",)])
def test_a_key_is_set_with_or_without_a_plus(words: tuple[str, ...], ran: list[RunConfig]) -> None:
    """Hydra's difference between changing and adding is not the user's concern."""
    assert main([*SIM, *words]) == OK
    assert ran[0].policy.gpu_time_weight == 0.3  # type: ignore[union-attr]


def test_experiment_without_a_plus_is_the_same(ran: list[RunConfig]) -> None:
    """``experiment=x`` is rewritten to ``+experiment=x``."""
    assert main(["experiment=tool_agent", "backend=sim"]) == OK
    assert main(SIM) == OK
    assert ran[0] == ran[1]


def test_one_way_to_tell_the_rate_takes_the_place_of_another(ran: list[RunConfig]) -> None:
    """The stored config shows the arrivals really used: a load clears the rate of the file."""
    assert main([*SIM, "arrival.load=0.7"]) == OK
    assert main([*SIM, "arrival.load=null"]) == OK
    assert (ran[0].arrival.load, ran[0].arrival.rate) == (0.7, None)
    assert (ran[1].arrival.load, ran[1].arrival.rate) == (None, 45.0)


def test_a_run_keeps_its_overrides_as_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run stores can be typed again, whatever Hydra was given."""
    kept: list[Sequence[str]] = []

    def keep(config: RunConfig, words: Sequence[str]) -> int:
        kept.append(words)
        return OK

    monkeypatch.setattr(jobs, "execute", keep)
    assert main(["experiment=tool_agent", "backend=sim", "arrival.load=0.7"]) == OK
    assert kept == [("experiment=tool_agent", "backend=sim", "arrival.load=0.7")]


def test_a_further_search_path_works(tmp_path: Path, ran: list[RunConfig]) -> None:
    """An option on hydra.searchpath is found though no packaged file has its name."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "heavy.yaml").write_text("# Heavier.\nname: paper\nbeta: 3.0\n")
    assert main([*SIM, f"hydra.searchpath=['{tmp_path.as_uri()}']", "policy=heavy"]) == OK
    assert ran[0].policy.beta == 3.0  # type: ignore[union-attr]


def test_a_mapping_replaces_the_files_mapping(ran: list[RunConfig]) -> None:
    """``cluster.composition={2: 20}`` is the whole composition; one entry alone can be changed too."""
    assert main([*SIM, "cluster.composition={2: 20}"]) == OK
    assert main([*SIM, "cluster.composition.4=7", "cluster.composition.2=6"]) == OK
    assert ran[0].cluster.composition == {2: 20}
    assert ran[1].cluster.composition == {4: 7, 2: 6}


def test_a_value_with_an_equals_sign_works_when_quoted(ran: list[RunConfig]) -> None:
    """What the hint says is true."""
    assert main([*SIM, "workload.path='a=b.jsonl'"]) == OK
    assert ran[0].workload.path == "a=b.jsonl"


def test_a_file_of_the_users_joins_and_wins(
    elsewhere: Path, ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """./conf adds an experiment and replaces a packaged file, and says that it does."""
    (elsewhere / "conf" / "experiment").mkdir(parents=True)
    (elsewhere / "conf" / "policy").mkdir()
    mine = "# @package _global_\n# Mine.\nname: mine\npurpose: to try\nseed: 9\n"
    (elsewhere / "conf" / "experiment" / "mine.yaml").write_text(mine)
    (elsewhere / "conf" / "policy" / "paper.yaml").write_text("# Heavier.\nname: paper\nbeta: 3.0\n")
    assert main(["+experiment=mine", "backend=sim", "policy=paper"]) == OK
    assert (ran[0].name, ran[0].seed, ran[0].policy.beta) == ("mine", 9, 3.0)  # type: ignore[union-attr]
    assert "./conf replaces the packaged policy/paper.yaml" in capsys.readouterr().err
    assert main(["ls", "experiment"]) == OK
    assert ["experiment", "mine", "Mine."] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_dry_run_shows_the_plan_and_runs_nothing(
    elsewhere: Path, ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """Requests, span and offered load against capacity; exit 0."""
    assert main([*SIM, "--dry-run"]) == OK
    out = capsys.readouterr().out
    assert "23,608" in out and "45.00 req/s" in out
    assert (ran, list(elsewhere.iterdir())) == ([], [])


def test_cfg_job_prints_the_composed_config(ran: list[RunConfig], capsys: pytest.CaptureFixture[str]) -> None:
    """As YAML on stdout, one document for each job of a sweep; nothing runs."""
    assert main([*SIM, "--cfg", "job", "-m", "seed=4,5"]) == OK
    first, second = capsys.readouterr().out.split("---\n")
    assert "seed: 4\n" in first and "seed: 5\n" in second
    assert ran == []
