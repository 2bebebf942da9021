"""``vertumnus tune`` as its user sees it: words, files, exit codes; a search that goes on where it was."""

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vertumnus.cli import main as vertumnus
from vertumnus.commandline.listing import entries
from vertumnus.domain.errors import VertumnusError
from vertumnus_profiling.tune import trials
from vertumnus_profiling.tune.__main__ import main
from vertumnus_profiling.tune.objectives import Requests

SIM = ("+experiment=tool_agent", "backend=sim", "policy=paper", "workload.requests=120")
SEARCH = (*SIM, "--space", "policy", "--train", "seed:10..12", "--judge", "seed:1..3", "--jobs", "1")
OUT = Path("conf", "policy", "tuned.yaml")
TRIALS = OUT.with_suffix("") / "trials.jsonl"


class Made:
    """Stands for the simulator: TTFT is least at beta 3, on every seed."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.last: int | None = None
        self.best_beta = 3.0

    def __call__(self, tree: dict[str, Any]) -> Requests:
        if self.last is not None and len(self.asked) >= self.last:
            raise KeyboardInterrupt
        self.asked.append({"seed": tree["seed"], **tree["policy"]})
        random = np.random.default_rng(tree["seed"])
        ttft_s = random.exponential(0.5, 400) * (1 + 0.2 * abs(tree["policy"]["beta"] - self.best_beta))
        return Requests(ttft_s, np.ones(400), (ttft_s < 1.0).astype(float))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Stand in an empty folder, with trials that take no time."""
    monkeypatch.chdir(tmp_path)
    stand_in = Made()
    monkeypatch.setattr(trials, "measured", stand_in)
    return stand_in


def test_a_search_ends_with_a_config_that_composes(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best of the points, judged on other seeds; policy=tuned is then a policy like any other."""
    assert main((*SEARCH, "--trials", "16")) == 0
    out = capsys.readouterr().out
    assert "verdict: better than untuned on held-out slices" in out and "vertumnus ... policy=tuned" in out
    text = (tmp_path / OUT).read_text()
    for told in ("--train seed:10..12", "vertumnus 0.1.0", "qwen3_30b_a3b on h20", "scan interval 20 s"):
        assert told in text, told
    assert "mean over seed 10, seed 11, seed 12" in text and "mean over seed 1, seed 2, seed 3" in text
    assert vertumnus([*SIM, "policy=tuned", "--cfg", "job"]) == 0
    composed = capsys.readouterr().out
    beta = float(composed.partition("beta: ")[2].split()[0])
    assert 2.0 < beta < 4.0 and f"beta: {beta}  # untuned 1" in text
    (listed,) = [entry for entry in entries("policy") if entry.name == "tuned"]
    assert listed.purpose.startswith("Tuned for mean_ttft on tool_agent, better than untuned")
    assert {each["seed"] for each in made.asked} == {10, 11, 12, 1, 2, 3}


def test_what_is_not_better_is_said_to_be_not_better(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """The training slices liked another beta; on the held-out ones it makes no difference, or harm."""
    assert main((*SEARCH, "--trials", "4", "--vary", "policy.beta=2.9..3.1")) == 0
    made.best_beta = 1.0
    assert main((*SEARCH, "--trials", "4", "--vary", "policy.beta=2.9..3.1", "--force")) == 0
    assert "verdict: WORSE than untuned" in capsys.readouterr().out
    assert "WORSE than untuned" in OUT.read_text().splitlines()[0]


def test_nothing_is_written_where_nothing_beat_the_untuned(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """beta 1 is best already."""
    made.best_beta = 1.0
    assert main((*SEARCH, "--trials", "4")) == 0
    assert "no trial beat the untuned config" in capsys.readouterr().out
    assert not OUT.exists() and TRIALS.exists()


def test_ctrl_c_keeps_the_trials_and_a_second_start_goes_on(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """130 after five runs; then only the others are run, and the result is that of one go."""
    made.last = 5
    assert main((*SEARCH, "--trials", "8")) == 130
    assert "start again to continue" in capsys.readouterr().err
    assert not OUT.exists() and len(TRIALS.read_text().splitlines()) == 1 + 5
    TRIALS.write_bytes(TRIALS.read_bytes() + b'{"trial":5,"par')  # as a kill would leave it
    made.last = None
    assert main((*SEARCH, "--trials", "8")) == 0
    assert "5 of 17 runs are done" in capsys.readouterr().err
    searched = [each for each in made.asked if each["seed"] >= 10]
    assert len(searched) == 17 == len(TRIALS.read_text().splitlines()) - 1
    resumed = OUT.read_text()
    assert main((*SEARCH, "--trials", "8", "--out", "conf/policy/again.yaml")) == 0
    again = Path("conf/policy/again.yaml").read_text()
    assert [line for line in again.splitlines() if "command" not in line] == [
        line for line in resumed.splitlines() if "command" not in line
    ]


def test_trials_of_another_search_are_not_taken_for_this_one(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """What differs is named; --force begins anew."""
    made.last = 3
    assert main((*SEARCH, "--trials", "8")) == 130
    made.last = None
    assert main((*SEARCH, "--trials", "8", "--objective", "p90_ttft")) == 2
    assert "holds trials of another search (objective: mean_ttft, now p90_ttft)" in capsys.readouterr().err
    assert main((*SEARCH, "--trials", "8", "--objective", "p90_ttft", "--force")) == 0
    assert json.loads(TRIALS.read_text().splitlines()[0])["objective"] == "p90_ttft"


BAD = [
    (("--space", "polcy"), "--space polcy: no such space; did you mean policy?"),
    (("--train", "seed:1..3"), "--judge: seed 1 shares requests with --train seed 1"),
    (("--train", "10,11"), "--train: found '10,11', must be seed:1,2,3"),
    (("--judge", "seed:"), "--judge: found 'seed:', must be seed:1,2,3"),
    (("--trials", "1"), "--trials: found 1, must be at least 2"),
    (("--jobs", "0"), "--jobs: found 0, must be at least 1"),
    (("arrival.patience_s=5",), "arrival.patience_s: found 5, must be null with --objective mean_ttft"),
    (("--objective", "speed"), "--objective: found speed, must be one of mean_ttft,"),
    (("--vary", "policy.beta=3"), "--vary: found 'policy.beta=3', must be KEY=LOW..HIGH"),
    (("--vary", "policy.beta=3..1"), "must ascend"),
    (("--vary", "policy.beta=0.5..3"), "0.5 is never taken: policy.beta: must be at least 1, got 0.5"),
    (("--vary", "policy.gamma=1..3"), "--vary policy.gamma: no key of policy=paper"),
    (("--out", "mine.yml"), "--out: found mine.yml, must end in .yaml"),
    (("--out", "old.yaml"), "--out: old.yaml exists; give another name, or replace it with --force"),
    (("policy=homo", "cluster=pool40_cp4"), "policy=homo has none of its keys (beta, gpu_time_weight"),
    (("policy.betta=2",), "policy.betta: unknown key for policy paper; did you mean policy.beta?"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_told_before_anything_runs(
    words: tuple[str, ...], said: str, made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 with the flag, what was found and what is allowed; nothing is run or written."""
    Path("old.yaml").write_text("name: paper\n")
    assert main((*SEARCH, *words)) == 2
    assert said in capsys.readouterr().err
    assert made.asked == [] and list(tmp_path.iterdir()) == [tmp_path / "old.yaml"]


def test_all_that_is_wrong_is_told_at_once(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Flags, overrides, slices, ranges and the file, each on a line."""
    wrong = ("bogus=1", "--trials", "1", "--judge", "sd:2", "--vary", "a", "--out", "x.txt")
    assert main((*SEARCH, *wrong)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: 5 problems"
    for said in (
        "--trials: found 1",
        "bogus: unknown key",
        "--judge: found 'sd:2'",
        "--vary: found 'a'",
        "--out: ",
    ):
        assert any(line.startswith(f"  - {said}") for line in lines), said


@pytest.mark.parametrize("missing", ["--space", "--train", "--judge"])
def test_what_has_to_be_said_is_asked_for(
    missing: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither space nor slices have a default: what a config is judged on is the user's to say."""
    place = SEARCH.index(missing)
    assert main((*SEARCH[:place], *SEARCH[place + 2 :])) == 2
    assert f"{missing}: required, but not given" in capsys.readouterr().err


def test_live_is_simulated_and_says_so(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 with the way to simulate this machine's pool."""
    assert main(("+experiment=tool_agent", *SEARCH[4:])) == 2
    assert "backend: found live, but trials are simulated" in capsys.readouterr().err


def test_help_names_spaces_and_slices(capsys: pytest.CaptureFixture[str]) -> None:
    """Usage, every space with its keys, the forms of slices, examples."""
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "controller.upper" in text and "seed:1..3" in text and "controller=tuned" in text


def test_any_number_of_processes_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real runs: one process and two give the same result and the same trials, their order aside."""
    monkeypatch.chdir(tmp_path)
    told = []
    for workers in ("1", "2"):
        out = f"conf/policy/by_{workers}.yaml"
        assert main((*SEARCH[:-1], workers, "--trials", "3", "--out", out)) == 0
        told.append(capsys.readouterr().out.replace(f"by_{workers}", "by_n"))
    assert told[0] == told[1] and "training" in told[0]
    journals = [set(Path(f"conf/policy/by_{n}/trials.jsonl").read_text().splitlines()) for n in "12"]
    assert journals[0] == journals[1] and len(journals[0]) == 1 + 4 + 3 + 2


def die(_tree: object) -> Requests:
    """End the process that runs a trial, as the system does when memory is short."""
    os._exit(9)


def test_a_process_that_dies_ends_the_search(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that says what to do, and no process is left behind."""
    monkeypatch.setattr(trials, "measured", die)
    before = set(multiprocessing.active_children())
    with pytest.raises(VertumnusError, match="was killed"), trials.Runners(2, trials.measured) as runners:
        list(runners.run([trials.Asked((0, 0), {})]))
    left = set(multiprocessing.active_children()) - before
    for process in left:
        process.join(30)  # one that was just starting when the other died takes a moment to end
    assert not [process for process in left if process.is_alive()]
