"""Scripted moves: what never can be is refused before the run, whatever becomes of the others is told."""

from csv import DictReader
from io import StringIO

import pytest

from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK

RUN = ("+experiment=reconfigure", "controller=manual", "workload.requests=60", "records.decision_share=0")


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("{at_s: 1, action: merge}", "found 0 workers, a merge takes 2"),
        ("{at_s: 1, action: merge, workers: [24x4, 24x4]}", "found 24x4 twice, a merge takes 2 workers"),
        ("{at_s: 1, action: split, workers: [24x8, 32x4]}", "found 2 workers, a split takes 1"),
        ("{at_s: 1, action: split, workers: [24x4]}", "degree 2 is not supported; allowed: [4, 8]"),
        ("{at_s: 1, action: merge, workers: [28x4, 32x4]}", "28x4 and 32x4 are not siblings"),
        ("{at_s: 1, action: merge, workers: [0x8, 8x8]}", "0x16 would not fit a node of 8 ranks"),
        ("{at_s: 1, action: split, workers: [99x4]}", "found 99x4, which is no group of 40 ranks"),
    ],
)
def test_what_never_can_be_is_refused_before_the_run(
    wish: str, said: str, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, reason, exit 2, no run."""
    words = (*RUN, f"controller.script=[{wish}]", f"runs_dir={tmp_path / 'runs'}")
    assert main(list(words)) == BAD_INPUT
    err = capsys.readouterr().err
    assert f"error: controller.script[0].workers: {said}" in err
    assert not (tmp_path / "runs").exists()


def test_a_refusal_and_a_move_that_did_not_come_are_told(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A merge of workers that are not there, and one after the end: on stderr, in summary and report."""
    script = (
        "[{at_s: 1, action: merge, workers: [0x4, 4x4]}, {at_s: 2, action: split, workers: [16x8]},"
        " {at_s: 5000, action: split, workers: [24x8]}]"
    )
    place = f"runs_dir={tmp_path}"
    assert main([*RUN, "cluster.composition={4: 4, 8: 3}", f"controller.script={script}", place]) == OK
    out, err = capsys.readouterr()
    assert "wish refused, merge 0x4 + 4x4 by script: merge 0x4 + 4x4: there is no worker 0x4" in err
    assert "controller.script[2]: split 24x8 at 5000 s was not reached, the run ended at" in err
    assert "Transitions (1, 1 refused)" in out
    assert main(["report", "reconfigs", "--csv", "--runs-dir", str(tmp_path)]) == OK
    refused, made = DictReader(StringIO(capsys.readouterr().out))
    assert [refused[name] for name in ("t_s", "move", "by", "outcome", "total_s")] == [
        "1.0", "merge 0x4 + 4x4", "script", "refused", "",
    ]  # fmt: skip
    assert (made["move"], made["outcome"]) == ("split 16x8 -> 16x4 + 20x4", "committed")


def test_a_split_that_would_leave_no_room_for_the_longest_prompt_is_refused(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 62 blocks a rank some prompts need the CP4: it stays, every request is served, replays agree."""
    words = ("+experiment=tool_agent", "backend=sim", "workload.requests=120", "controller=manual")
    pool = ("cluster.gpus=4", "cluster.degrees=[2,4]", "cluster.composition={4: 1, 2: 0}")
    script = "controller.script=[{at_s: 1, action: split, workers: [0x4]}]"
    place = f"runs_dir={tmp_path}"
    assert main([*words, *pool, "cluster.blocks_per_rank=62", script, place]) == OK
    why = "no other worker could hold the longest prompt of this run, which needs degree"
    assert f"wish refused, split 0x4 by script: split 0x4: {why}" in capsys.readouterr().err
    rows = "SELECT DISTINCT status FROM requests"
    assert main(["sql", rows, "--csv", "--runs-dir", str(tmp_path)]) == OK
    assert capsys.readouterr().out.split() == ["status", "finished"]
    assert main(["audit", "latest", "--runs-dir", str(tmp_path)]) == OK
    assert main(["preview", "split", "0x4", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert why in capsys.readouterr().err
