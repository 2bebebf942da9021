"""``vertumnus figures``: runs what is missing, once, and writes one report; mistakes end before that."""

from pathlib import Path

import pytest

from vertumnus import sweep
from vertumnus.cli import main
from vertumnus.commandline import figure_report, figure_runs, figures
from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, OK
from vertumnus.commandline.figure_kept import Kept
from vertumnus.commandline.figure_wanted import chosen
from vertumnus.domain.extras import installing
from vertumnus.records.run_dir import list_runs
from vertumnus.report.compare.members import Members
from vertumnus.report.paper import rates, table2
from vertumnus.report.paper.catalogue import ENTRIES
from vertumnus.sweep import Sweep

pytest.importorskip("matplotlib")
SLICE = ("figures", "figure2", "seed=0", "workload.requests=40", "--simulated")


def test_a_slice_from_nothing_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run a degree; again, nothing is composed, read or drawn; redrawn, it is the same to the byte."""
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
        raise AssertionError("what is there was made again")

    with monkeypatch.context() as patched:
        patched.setattr(figure_report, "wanted_sweeps", refuse)
        patched.setattr(figure_report, "members_by", refuse)
        patched.setattr(figure_report, "illustrated", refuse)
        assert main(SLICE) == OK
    told = capsys.readouterr()
    assert told.out.splitlines() == ["figures/report.md", "figures/report.html"]
    assert told.err.startswith("figures: nothing has changed since 20") and "--redraw" in told.err
    monkeypatch.setattr(sweep, "run_sweep", refuse)
    assert main([*SLICE, "--redraw"]) == OK
    assert {file.name: file.read_bytes() for file in Path("figures").iterdir()} == before
    Path("figures", "report.md").write_text("mine")
    capsys.readouterr()
    assert main(SLICE) == OK
    assert "changed since 20" in (err := capsys.readouterr().err) and err.splitlines()[0].endswith(
        ": the report"
    )
    assert Path("figures", "report.md").read_text() == text


def test_a_chapter_that_cannot_be_made_leaves_the_others_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has the other one, says why the first is missing, and the exit code is 1."""
    monkeypatch.chdir(tmp_path)

    def broken(*_: object) -> None:
        raise KeyError("model")

    monkeypatch.setattr(table2, "_grid", broken)
    for _ in range(2):  # what has failed is not kept
        assert main(["figures", "table1", "table2", "seed=0", "workload.requests=20"]) == FAILED
        assert "table2 could not be made: 'model'" in capsys.readouterr().err
    text = Path("figures/report.md").read_text()
    assert "This chapter could not be made: 'model'" in text
    assert "L-Eval: requests | 2,369 | 20" in text


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sweeps take no time and do nothing; the experiment of each is noted, *reconfigure* is interrupted."""
    noted: list[str] = []

    def run(jobs: list[sweep.Job], *_: object, **__: object) -> Sweep:
        noted.append(jobs[0].config.name)
        return Sweep("", {1: sweep.Ending("failed")}, noted[-1] == "reconfigure")

    monkeypatch.setattr(sweep, "run_sweep", run)
    return noted


def test_what_is_executed_comes_first_and_failed_runs_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swept: list[str]
) -> None:
    """Before anything is simulated the machine is quiet; the report is written whatever has failed."""
    monkeypatch.chdir(tmp_path)
    assert main(["figures", "table2", "figure2", "seed=0", "workload.requests=20"]) == FAILED
    assert swept == ["prefill_times_live", "deadlines", "prefill_times"]
    assert Path("figures/report.md").exists() and Kept.find(Path("figures")) is None


def test_a_report_without_all_runs_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever became of them since they were counted: the next call looks again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figure_report, "make_runs", lambda *_: OK)
    monkeypatch.setattr(figure_report, "of_runs", lambda *_: {})
    monkeypatch.setattr(
        figure_report, "members_by", lambda _, sweeps: dict.fromkeys(sweeps, Members([], ["gone"]))
    )
    assert main(["figures", "table1", "seed=0", "workload.requests=20"]) == OK
    assert Path("figures/report.md").exists() and Kept.find(Path("figures")) is None


def test_an_interrupt_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swept: list[str]) -> None:
    """The sweeps to come do not start, and no report is written of half of the runs."""
    monkeypatch.chdir(tmp_path)
    assert main(["figures", "figure13", "table1", "seed=1", "workload.requests=200"]) == INTERRUPTED
    assert swept == ["workloads", "reconfigure"] and not Path("figures").exists()


def test_the_curves_have_the_rates_that_are_tuned(tmp_path: Path) -> None:
    """Figs. 10-12 take three workloads, their rates and three seeds of six methods; a typed level wins."""
    entries = chosen(["figures10-12"])
    for overrides, levels in (((), set(rates.LEVELS)), (("grid.level=highest",), {"highest"})):
        wanted = figure_runs.Wanted(entries, overrides, tmp_path, (), False, True)
        (grid,) = figure_runs.wanted_sweeps(wanted)
        found = [dict(word.split("=", 1) for word in job.words) for job in grid.jobs]
        assert {words["grid.level"] for words in found} == levels
        assert len(found) == 3 * 3 * len(rates.METHODS) * len(levels)


def test_the_list_names_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """With its title and experiments, in the paper's order; of a name, the one that has it."""
    assert main(["figures", "--list"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *(entry.name for entry in ENTRIES)]
    assert main(["figures", "figure8", "--list"]) == OK
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["name", "figures7-9"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["figure1"], "figure1: no such table or figure; did you mean figure14? (allowed: table1, "),
        (["table1", "experiment=tool_agent"], "the figures choose their experiments"),
        (["table1", "runs_dir=elsewhere"], "runs_dir=elsewhere: has no effect here; use --runs-dir"),
        (["fig13"], "fig13: no such table or figure; did you mean figure13?"),
        (["table1", "seeed=1"], "seeed"),
        (["table1", "--only", "seed"], "--only: found seed, must be KEY=VALUE"),
        (
            ["table2", "workload=conversation", "workload.path=gone.jsonl"],
            "workload.path: no file 'gone.jsonl'",
        ),
        (["table1", "--jobs", "0"], "--jobs: found 0, must be a whole number of at least 1"),
        (["table1", "--out", "file"], "--out: found file, which is a file; must be a folder"),
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


def test_without_matplotlib_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], swept: list[str]
) -> None:
    """Said before a run that takes minutes, with the command that mends it; the list needs none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    assert main(SLICE) == BAD_INPUT
    said = f"error: figures: matplotlib is not installed; {installing('figures')}\n"
    assert capsys.readouterr().err == said
    assert swept == [] and list(tmp_path.iterdir()) == []
    assert main(["figures", "--list"]) == OK
