"""The chapters by their runs: what each takes from the tables, and that none needs what is not there."""

from pathlib import Path

import pytest

from tests.report.compare.test_figure14 import COPIED
from tests.report.compare.test_figure14 import leave_runs as leave_ablation
from tests.support.recorded import a_ulid
from tests.support.sweeps import BESIDES_S, REQUESTS, a_config, a_timed_run, leave_runs
from vertumnus.report.compare.members import Members, find_members
from vertumnus.report.paper import figure2, figure13, figure14, table1
from vertumnus.report.paper.catalogue import ENTRIES, Entry
from vertumnus.report.paper.chapter import Runs
from vertumnus.report.paper.section import make_section

BY_NAME = {entry.name: entry for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_chapter_without_runs_says_so(entry: Entry, tmp_path: Path) -> None:
    """Every statement stands there with no value of ours, no picture is drawn, nothing fails."""
    section = make_section(entry, Runs(tmp_path, {}), [])
    assert all(claim.ours is None for claim in section.chapter.claims)
    assert section.chapter.pictures == () or section.chapter.pictures == []
    assert section.sources == [] and section.chapter.says


def test_table1_counts_what_arrived(tmp_path: Path) -> None:
    """Two seeds of four requests of 40 tokens in, 4 out, nothing reused."""
    for seed in (0, 1):
        config = a_config("paper", seed, workload={"name": "l_eval"})
        a_timed_run(tmp_path, seed, (f"seed={seed}",), config, 1.0)
    members = find_members(tmp_path, [a_ulid(0), a_ulid(1)])
    section = make_section(BY_NAME["table1"], Runs(tmp_path, {table1.EXPERIMENT: members}), ["seed=0,1"])
    claims = {claim.what: claim.ours for claim in section.chapter.claims}
    requests, mean, reuse = (claims[f"L-Eval: {what}"] for what in ("requests", "input, mean", "reuse"))
    assert requests == (REQUESTS, REQUESTS, REQUESTS) and mean == (40, 40, 40) and reuse == (0, 0, 0)
    assert claims["Production: requests"] is None
    (source,) = section.sources
    assert source.startswith("SIMULATED: 2 runs of experiment workloads, seeds 0, 1, policies paper")
    assert source.endswith("vertumnus +experiment=workloads -m seed=0,1")


def test_what_ran_beside_executed_runs_is_told(tmp_path: Path) -> None:
    """Runs of 12 and 40 % make a range; the line of simulated ones says nothing of it."""
    for seed in (0, 1):
        a_timed_run(tmp_path, seed, (), a_config("paper", seed), 1.0)
    runs = find_members(tmp_path, [a_ulid(0), a_ulid(1)]).runs

    def source(execution: str, shares: tuple[float | None, float | None]) -> str:
        rows = [
            {**run.row, "execution": execution, "others_cpu_share": share}
            for run, share in zip(runs, shares, strict=True)
        ]
        members = Members([run._replace(row=row) for run, row in zip(runs, rows, strict=True)], [])
        (line,) = make_section(BY_NAME["figure2"], Runs(tmp_path, {figure2.EXECUTED: members}), []).sources
        return line

    assert ", beside other programs that used 12 to 40 % of the cores; vertumnus" in source(
        "executed", (0.4, 0.12)
    )
    assert "beside" not in source("simulated", (None, None))


def test_speed_ups_are_ratios_of_the_same_seed_and_length() -> None:
    """8 s alone and 4 s together, 9 s and 3 s with the other seed: 2x and 3x, 2.5x in the mean."""
    rows = [
        {"seed": seed, "cp_degree": degree, "input_tokens": 1024, "prefill_s": seconds}
        for seed, degree, seconds in ((0, 1, 8.0), (0, 4, 4.0), (1, 1, 9.0), (1, 4, 3.0), (2, 4, 1.0))
    ]
    found = figure2.speedups(rows)
    assert list(found) == [(4, 1024)] and found[4, 1024].mean == pytest.approx(2.5)


def test_figure13_has_statements_stages_and_three_kinds_of_panels(tmp_path: Path) -> None:
    """The merge of the hand-made runs drains for 4 s and switches in 1 s; ours is 22 % faster in phase 2."""
    members = find_members(tmp_path, leave_runs(tmp_path))
    chapter = figure13.chapter(Runs(tmp_path, {figure13.EXPERIMENT: members}))
    claims = {claim.what: claim for claim in chapter.claims}
    (statement,) = [claim for what, claim in claims.items() if "phase 2" in what]
    assert statement.paper == (-0.196, -0.196) and statement.ours is not None
    assert statement.ours.mean == pytest.approx((2.0 + BESIDES_S) / (3.0 + BESIDES_S) - 1)
    drain, switch = claims["drain, median of a run's moves"].ours, claims["switch, longest of a run"].ours
    assert drain is not None and switch is not None and (drain.mean, switch.mean) == (4.0, 1.0)
    (picture,) = chapter.pictures
    composition, rate, ttft, moves = picture.panels
    assert {series.look for series in composition.series} == {"area"} and rate.series[0].look == "step"
    assert [series.label for series in ttft.series] == ["brisk", "4 x CP4 + 3 x CP8"]
    assert moves.bars is not None and moves.bars.labels == ["S1 merge"]


def test_figure14_has_gains_and_what_they_cost(tmp_path: Path) -> None:
    """Each statement of the paper beside ours; 4 MiB for what all requests of two seeds saved."""
    cells = [("paper", 60, 4.5), ("off", 60, 5.0), ("paper", 30, 3.0), ("off", 30, 3.0)]
    members = find_members(tmp_path, leave_ablation(tmp_path, cells))
    chapter = figure14.chapter(Runs(tmp_path, {figure14.EXPERIMENT: members}))
    assert [(claim.paper[0], claim.ours is not None) for claim in chapter.claims] == [
        (-0.103, True),
        (-0.187, True),
    ]
    gains, copies = chapter.grids
    assert [row[0] for row in gains.rows] == ["cache=paper, 30 requests/s", "cache=paper, 60 requests/s"]
    assert gains.rows[1][1].startswith("-10.0 %")
    price = 2 * COPIED / (1_000 * REQUESTS * (0.5 + 1.0))
    assert [row[-1] for row in copies.rows] == ["none saved", f"{price:,.0f}"]
