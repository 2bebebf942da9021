"""A placement made anew from the log is the one that was made, and hindsight is what the log shows."""

import json
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.support.recorded import a_run_under_way
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import find_run
from vertumnus.run.asked import Asked
from vertumnus.run.execute import execute
from vertumnus.run.explain import explain_run

WORDS = ("+experiment=tool_agent", "backend=sim", "workload.requests=120", "records.decision_share=1.0")
BUSY = ("arrival.rate=70", "cluster.gpus=12", "cluster.composition={4: 2, 2: 2}")


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One busy run whose decisions are all in its table."""
    return a_run(tmp_path_factory.mktemp("runs"))


def a_run(runs_dir: Path, *words: str) -> Path:
    """Simulate a short busy run below *runs_dir*."""
    with hydra_configs():
        tree = plain_tree(composed((*WORDS, *BUSY, *words, f"runs_dir={runs_dir}")))
    execute(to_run_config(tree), Asked(words), Console(file=StringIO()))
    return runs_dir


def test_every_placement_is_the_recorded_one(runs_dir: Path) -> None:
    """Same candidates, terms, costs and choice as in the decisions table, outcomes as in that of requests."""
    run = find_run(runs_dir).run
    decisions = pq.read_table(run.table("decisions")).to_pylist()
    requests = pq.read_table(run.table("requests")).to_pylist()
    for number in range(0, 120, 7):
        (placement,) = explain_run(run, number).placements
        recorded = {row["worker_id"]: row for row in decisions if row["request_id"] == number}
        told = {str(each.offer.worker): each for each in placement.candidates}
        assert told.keys() == recorded.keys()
        for worker, row in recorded.items():
            offer = told[worker].offer
            terms = (
                offer.queue_ns,
                offer.service_ns,
                offer.extra_gpu_ns,
                offer.externality_ns,
                told[worker].cost,
            )
            names = ("queue_s", "service_s", "gpu_time_s", "externality_s", "cost_s")
            assert [term / 1e9 for term in terms] == [row[name] for name in names]
            assert row["chosen"] == (told[worker] == placement.chosen)
        outcome, row = placement.outcome, requests[number]
        assert (outcome.first_token_ns - requests[number]["arrival_s"] * 1e9) / 1e9 == pytest.approx(
            row["ttft_s"]
        )
        assert (outcome.cached_tokens, outcome.ended) == (row["cached_tokens"], "finished")


def test_candidates_come_cheapest_first(runs_dir: Path) -> None:
    """The chosen one leads, the runner-up follows, and regret is against the best in hindsight."""
    run, regrets = find_run(runs_dir).run, []
    for number in range(3, 120, 13):
        (placement,) = explain_run(run, number).placements
        costs = [each.cost for each in placement.candidates]
        assert costs == sorted(costs)
        assert placement.candidates[0] == placement.chosen and placement.candidates[1] == placement.runner_up
        best = min(each.hindsight_ns for each in placement.candidates)
        assert placement.regret_ns == placement.chosen.hindsight_ns - best >= 0
        regrets.append(placement.regret_ns)
    assert any(regrets)


def test_hindsight_of_an_idle_pool_is_the_prediction(runs_dir: Path) -> None:
    """The first request of all waits for nobody: hindsight is its service time, and there is no regret."""
    (placement,) = explain_run(find_run(runs_dir).run, 0).placements
    assert all(each.hindsight_ns == each.offer.service_ns for each in placement.candidates)


def test_hindsight_waits_for_those_who_stood_before(runs_dir: Path) -> None:
    """At the chosen worker it ends when the last of the jobs before did, which the requests table tells."""
    run = find_run(runs_dir).run
    rows = pq.read_table(run.table("requests")).to_pylist()
    checked = 0
    for number in range(40, 120, 5):
        explanation = explain_run(run, number)
        (placement,) = explanation.placements
        chosen, at = placement.chosen, placement.decision.at
        if chosen.offer.pull is not None:
            continue
        ends = [
            row["arrival_s"] + row["queue_s"] + row["cache_wait_s"] + row["prefill_s"]
            for row in rows
            if row["worker_id"] == str(chosen.offer.worker) and row["request_id"] != number
        ]
        freed = at + chosen.hindsight_ns - chosen.offer.service_ns
        assert freed == at or any(abs(freed / 1e9 - end) < 1e-6 for end in ends)
        checked += freed > at
    assert checked


@pytest.mark.parametrize(
    ("policy", "unit"),
    [("lmetric", "tokens x requests"), ("round_robin", "turns"), ("static", "ns"), ("paper", "ns")],
)
def test_every_policy_is_explained(tmp_path: Path, capsys, policy: str, unit: str) -> None:
    """The unit of its costs is named, and only those with the published terms show them."""
    words = ["policy.length_threshold=4000"] if policy == "static" else []
    a_run(tmp_path, f"policy={policy}", "workload.requests=30", *words)
    capsys.readouterr()
    assert main(["explain", "29", "--runs-dir", str(tmp_path), "--json"]) == OK
    (placement,) = json.loads(capsys.readouterr().out)["placements"]
    assert (placement["policy"], placement["cost_unit"]) == (policy, unit)
    has_terms = placement["candidates"][0]["beta_service_s"] is not None
    assert has_terms == (policy == "paper")
    assert main(["explain", "29", "--runs-dir", str(tmp_path)]) == OK
    text = capsys.readouterr().out
    assert "SIMULATED" in text and "chosen" in text and f"by policy {policy}" in text
    assert (f"[{unit}]" in text) == (unit != "ns")
    assert f"why       {placement['why']}\n" in text and placement["why"].startswith(placement["chosen"])
    columns = text.split("worker  ")[1].split("\n")[0].replace(f"[{unit}]", "").split()
    meanings = text.split("the columns\n")[1].splitlines()
    assert {line.split()[0] for line in meanings} >= set(columns) - {"beta*s", "lambda*gpu", "externality"}


def test_an_unknown_request_is_refused(runs_dir: Path, capsys) -> None:
    """The message names the requests that there are, or what a number is."""
    with pytest.raises(ConfigError, match=r"request 120: not in run .*; its requests are 0 to 119"):
        explain_run(find_run(runs_dir).run, 120)
    assert main(["explain", "latest", "x", "--runs-dir", str(runs_dir)]) == BAD_INPUT
    assert "request: found x, must be a whole number of at least 0" in capsys.readouterr().err


def test_flags_stand_anywhere_among_the_words(runs_dir: Path, capsys) -> None:
    """Between run and request too, where the run may be left out."""
    capsys.readouterr()
    place, told = ("--runs-dir", str(runs_dir)), []
    for words in (("latest", "--json", "7"), ("--json", "latest", "7"), ("7", "--json"), ("--json", "7")):
        assert main(["explain", *place, *words]) == OK
        told.append(capsys.readouterr().out)
    assert len(set(told)) == 1 and json.loads(told[0])["request_id"] == 7


@pytest.mark.parametrize("verb", [["explain", "7"], ["audit", "latest"]])
def test_the_latest_is_told_where_a_newer_run_has_not_ended(
    runs_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    """Somebody may have meant the one that was killed: both ids are said, on stderr."""
    run = find_run(runs_dir).run
    (tmp_path / run.run_id).symlink_to(run.path.absolute())
    newer = "7" + "Z" * 25  # the last id that there can be
    a_run_under_way(tmp_path, newer)
    assert main([*verb, "--runs-dir", str(tmp_path)]) == OK
    told = capsys.readouterr()
    assert run.run_id in told.out and f"the latest run that has ended; {newer} began after it" in told.err
