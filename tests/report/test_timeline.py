"""A run over its own time: the numbers behind the picture, and the picture as a file."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.recorded import (
    MERGED,
    a_changing_history,
    a_header,
    a_history,
    a_run,
    a_ulid,
    told_in_order,
)
from vertumnus.cli import main
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import RankLost
from vertumnus.domain.units import SECOND
from vertumnus.report import figures, output_file
from vertumnus.report.timeline import OUT_OF_SERVICE, load_timeline

RUN = a_ulid(1)


def timeline_of(folder: Path, records=None):
    """Record a run and load its timeline."""
    a_run(folder, RUN, a_changing_history() if records is None else records)
    return load_timeline(folder, RUN)


def test_the_composition_changes_when_the_epoch_is_sent(tmp_path: Path) -> None:
    """Two CP1 merge: their drain ends at 24 s, where two ranks pass from degree 1 to degree 2."""
    timeline = timeline_of(tmp_path)
    assert timeline.t_s.tolist() == [0.0, 24.0, timeline.t_s[-1]]
    assert [(band.degree, band.ranks.tolist()) for band in timeline.bands] == [
        (1, [2.0, 0.0, 0.0]),
        (2, [2.0, 4.0, 4.0]),
    ]


def test_a_lost_rank_takes_its_worker_out(tmp_path: Path) -> None:
    """The pair's two ranks serve nobody from the sample after the loss on; all ranks still add up to G."""
    lost = [Record(INPUT, RankLost(6 * SECOND + 1, 0, 0, "killed"))]
    timeline = timeline_of(tmp_path, told_in_order([a_history(12), lost]))
    assert timeline.t_s.tolist()[:2] == [0.0, 7.0]
    assert timeline.bands[-1].degree == OUT_OF_SERVICE
    assert timeline.bands[-1].ranks.tolist() == [0.0, 2.0, 2.0]
    assert sum(band.ranks for band in timeline.bands).tolist() == [4.0] * 3


def test_requests_are_binned_by_arrival(tmp_path: Path) -> None:
    """Twelve arrivals at 0, 1, ... 11 s: one a bin of a second, the last bin has two; TTFTs are theirs."""
    bins = timeline_of(tmp_path).bins
    assert bins.edges_s.tolist() == list(range(12))
    assert bins.rate.tolist() == [1.0] * 10 + [2.0]
    assert bins.p50_s[:4].tolist() == [2.5, 2.75, 3.0, 3.25]  # queue 0, 0.25, 0.5, 0.75 s
    assert bins.p90_s[-1] == pytest.approx(np.quantile([3.0, 3.25], 0.9))


def test_transitions_carry_their_stages(tmp_path: Path) -> None:
    """The merge begins at 20 s, drains for 4 s and switches in 1 s."""
    (merge,) = timeline_of(tmp_path).transitions
    left, right = MERGED.halves
    assert merge == (20.0, "merge", f"{left} + {right} -> {MERGED}", 4.0, 1.0)


def test_phases_end_where_the_workload_says(tmp_path: Path) -> None:
    """Bounds of phases are times of the run, scaled as the arrivals are, and none where a rate moved them."""

    def bounds(number: int, **arrival) -> tuple[float, ...]:
        phases = [{"duration_s": 4.0}, {"duration_s": 3.0}, {"duration_s": 9.0}]
        header = a_header()
        header.config["workload"].update(phases=phases, start_s=1.0)
        header.config["arrival"].update(arrival)
        a_run(tmp_path, a_ulid(number), header=header)
        return load_timeline(tmp_path, a_ulid(number)).phases_s

    assert bounds(1) == (3.0, 6.0)
    assert bounds(2, time_scale=1.5) == (4.5, 9.0)
    assert bounds(3, rate=2.0) == ()


@pytest.mark.parametrize(("kind", "starts"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_picture_is_a_file(tmp_path: Path, kind: str, starts: bytes, capsys) -> None:
    """`report reconfig_timeline --figure` writes it, whole, and says where."""
    pytest.importorskip("matplotlib", reason="the extra figures is not installed")
    a_run(tmp_path, RUN, a_changing_history(), a_header("live"))
    file = tmp_path / f"fig.{kind}"
    assert main(["report", "reconfig_timeline", "--runs-dir", str(tmp_path), "--figure", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert file.read_bytes().startswith(starts)
    if kind == "svg":
        drawn = file.read_text()
        assert f"EXECUTED: trial, policy paper, controller manual, seed 0, run {RUN}" in drawn
        assert "time of the run [s]" in drawn and "TTFT by arrival [s]" in drawn


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["summary", "--figure", "a.png"], "report summary has no picture; allowed: reconfig_timeline"),
        (["reconfig_timeline", "--figure", "a.jpg"], "its name must end in one of .png, .svg, .pdf"),
        (["reconfig_timeline", "--figure", "none/a.png"], "there is no folder none"),
        (["reconfig_timeline", "--json", "--figure", "a.png"], "--json would have no effect"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, words: list[str], problem: str, capsys) -> None:
    """Each mistake is named before anything is read or written."""
    assert main(["report", *words, "--runs-dir", str(tmp_path)]) == 2
    assert problem in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base install reports without pictures and says what is missing."""
    monkeypatch.setattr(output_file, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'vertumnus\[figures\]'"):
        figures.require_drawable("reconfig_timeline", tmp_path / "a.png")


def test_a_run_without_requests_has_no_timeline(tmp_path: Path) -> None:
    """A run that was cut off before its first arrival is told as such."""
    a_run(tmp_path, RUN, [])
    with pytest.raises(ConfigError, match="it served nothing"):
        load_timeline(tmp_path, RUN)
