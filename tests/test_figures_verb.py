"""``vertumnus figures``: runs what is missing, once, and writes one report; mistakes end before that."""

from pathlib import Path

import pytest

from vertumnus import sweep
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.records.run_dir import list_runs
from vertumnus.report.paper.catalogue import ENTRIES

pytest.importorskip("matplotlib")
SLICE = ("figures", "figure2", "seed=0", "workload.requests=40", "--simulated")


def test_a_slice_from_nothing_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run a degree; the second time nothing is run, and the report is the same to the byte."""
    monkeypatch.chdir(tmp_path)
    assert main(SLICE) == OK
    assert capsys.readouterr().out.splitlines() == ["figures/report.md", "figures/report.html"]
    assert len(list_runs(Path("runs"))) == 4
    text = Path("figures/report.md").read_text()
    assert "A slice, made with seed=0 workload.requests=40: no basis for conclusions." in text
    assert "SIMULATED: 4 runs of experiment prefill_times, seeds 0, policies paper" in text
    assert "C=4 at 64K tokens | 2.71x" in text
    before = {file.name: file.read_bytes() for file in Path("figures").iterdir()}

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a run that is there was started again")

    monkeypatch.setattr(sweep, "run_sweep", refuse)
    assert main(SLICE) == OK
    assert {file.name: file.read_bytes() for file in Path("figures").iterdir()} == before


def test_the_list_names_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """With its title, in the paper's order."""
    assert main(["figures", "--list"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [entry.name for entry in ENTRIES]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["figure1"], "figure1: no such table or figure; there are: table1, "),
        (["table1", "experiment=tool_agent"], "the figures choose their experiments"),
        (["table1", "runs_dir=elsewhere"], "runs_dir=elsewhere: has no effect here; use --runs-dir"),
        (["table1", "seeed=1"], "seeed"),
        (["table1", "--jobs", "0"], "--jobs: found 0, must be a whole number of at least 1"),
        (["table1", "--out", "file"], "--out: found file, which is no folder"),
    ],
)
def test_mistakes(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, one message, no run."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    assert main(["figures", *words]) == BAD_INPUT
    assert message in capsys.readouterr().err
    assert list_runs(Path("runs")) == []
