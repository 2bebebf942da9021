"""``vertumnus profile`` as it is typed: exit codes, messages, and one whole profile on real ranks."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.builders import a_prefill_time
from tests.support.profiles import read_profile
from tests.support.rank_processes import ranks_started_by
from vertumnus.cli import main as vertumnus
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.extras import installing
from vertumnus.domain.units import SECOND, Tokens
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.plan import LivePlan
from vertumnus_profiling import program, sweep
from vertumnus_profiling.__main__ import main
from vertumnus_profiling.grid import NAMED, SweepPoint
from vertumnus_profiling.samples import StepSample, TailSample

TIMES = a_prefill_time((1, 2))


class Made:
    """A stopwatch whose ranks are a formula; it notes what it is asked, and can be told to stop."""

    asked: list[SweepPoint]
    last: int | None
    slowness: float

    def __init__(self, degree: int) -> None:
        self.degree = degree

    def steps(self, size: tuple[int, int]) -> StepSample:
        """The formula's time, or an interrupt once *last* samples were made."""
        if self.last is not None and len(self.asked) >= self.last:
            raise KeyboardInterrupt
        Made.asked.append(SweepPoint(self.degree, *size))
        took_s = TIMES.predict(self.degree, *size) / SECOND * (self.slowness if size[0] == 256 else 1.0)
        return StepSample(self.degree, *size, 1, took_s, took_s, 1.0, took_s, took_s, 1.0, 0.0)

    def tail(self, input_tokens: int) -> TailSample:
        """A millisecond of hand-off, two for each of 16 tokens."""
        return TailSample(input_tokens, 0.001, 0.033, 0.0)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Made]:
    """Profiles made by `Made` in a folder of their own, on two cores."""

    @contextmanager
    def stopwatch(plan: LivePlan, longest: Tokens) -> Iterator[Made]:
        yield Made(plan.workers[0].degree)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "stopwatch", stopwatch)
    monkeypatch.setattr(program, "shared_cores", lambda plan: 2)
    monkeypatch.setattr(program, "find_spec", lambda name: None)  # no matplotlib: drawing takes a second
    Made.asked, Made.last, Made.slowness = [], None, 1.0
    return Made


QUICK = ("model=nano", "--points", "quick", "--repeats", "2", "--no-capacity")
POINTS = 2 * len(NAMED["quick"][0]) * len(NAMED["quick"][1])


def profiles(folder: Path) -> list[Path]:
    """The profiles that lie where runs find them."""
    return sorted((folder / "conf" / "profile").glob("*.yaml"))


def test_a_profile_lands_where_runs_find_it(
    made: type[Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In ./conf/profile, with points and figures beside it; coefficients, errors and origin are in it."""
    assert main(QUICK) == 0
    (path,) = profiles(tmp_path)
    profile = read_profile(path)
    assert path.name.startswith("nano-") and profile.model == "nano"
    assert profile.prefill_time().predict(2, 700, 64) == pytest.approx(TIMES.predict(2, 700, 64), rel=1e-4)
    assert (profile.form, profile.clocks, profile.capacity) == ("per_degree", {1: "wall", 2: "wall"}, None)
    assert (profile.handoff_base_s, profile.decode_step_s) == (0.001, pytest.approx(0.002))
    assert profile.kv_bytes_per_token == MODEL_PRESETS["nano"].kv_bytes_per_token
    assert "18 points from 36 samples" in profile.provenance and "torch" in profile.provenance
    beside = {file.name for file in path.with_suffix("").iterdir()}
    assert "points.jsonl" in beside and not any("partial" in name for name in beside)
    out, err = capsys.readouterr()
    assert f"matplotlib is not installed ({installing('figures')}), none drawn" in err
    assert "per_degree (used)  CP2" in out and "CP2 is faster than CP1 from " in out
    assert f"profile conf/profile/{path.name}" in out


def test_figures_are_drawn_in_both_kinds(
    made: type[Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figs. 2 and 4 as PNG and SVG."""
    pytest.importorskip("matplotlib", reason="the extra figures is not installed")
    monkeypatch.setattr(program, "find_spec", find_spec)
    assert main(QUICK) == 0
    folder = profiles(tmp_path)[0].with_suffix("")
    for name in ("speedup", "accuracy"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.svg").stat().st_size > 5_000


def test_ctrl_c_keeps_the_points_and_a_second_start_continues(
    made: type[Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """130 after 5 samples, nothing written; then only the other samples are made."""
    made.last = 5
    assert main(QUICK) == 130
    assert profiles(tmp_path) == [] and "start again to continue" in capsys.readouterr().err
    made.last = None
    assert main(QUICK) == 0
    assert len(made.asked) == 2 * POINTS
    assert {made.asked.count(point) for point in made.asked} == {2}
    assert "5 samples of" in capsys.readouterr().err


def test_a_bad_fit_is_refused_and_forced_without_measuring_again(
    made: type[Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Times that no form can follow: exit 1, errors shown, no profile; --force writes it and says so."""
    made.slowness = 9.0
    assert main(QUICK) == 1
    streams = capsys.readouterr()
    assert "the per_degree fit is refused: its held-out P90 error is" in streams.err
    assert "--force" in streams.err and "held-out error" in streams.out and profiles(tmp_path) == []
    assert main((*QUICK, "--force")) == 0
    assert len(made.asked) == 2 * POINTS
    assert "written with --force" in read_profile(profiles(tmp_path)[0]).provenance


def test_kappa_goes_into_the_profile(
    made: type[Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each degree's, from the simulator with the new fit, on few requests here."""
    monkeypatch.setattr("vertumnus_profiling.capacity.LEAST_REQUESTS", 150)
    monkeypatch.setattr("vertumnus_profiling.capacity.MOST_REQUESTS", 150)
    assert main([word for word in QUICK if word != "--no-capacity"]) == 0
    profile = read_profile(profiles(tmp_path)[0])
    capacity = profile.capacity
    assert capacity is not None and set(capacity) == {1, 2}
    for row in capacity.values():
        assert isinstance(row, dict) and set(row) == {1, 2, 4}
        assert all(0.1 < kappa < 4 for kappa in row.values())
    assert (
        profile.capacity_provenance is not None and "pools of 1, 2, 4 workers" in profile.capacity_provenance
    )
    assert "within target at" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problems"),
    [
        (["model=tiy"], ["model=tiy: no such model; did you mean tiny?"]),
        (["backend=sim"], ["backend: found sim, but a profile is measured; use backend=live"]),
        (
            ["policy=paper", "arrival.rate=3", "profile=none"],
            ["policy: has no effect", "arrival.rate: has no effect", "profile: has no effect"],
        ),
        (["--repeats", "0"], ["--repeats: found 0, must be at least 1"]),
        (["--live", "--no-capacity"], ["--live: has no effect with --no-capacity"]),
        (["--points", "64+0"], ["--points: found 1 that model tiny can hold, a fit needs at least 6"]),
        (["--ponits", "quick"], ["--ponits"]),
        (["--clock", "sun"], ["--clock"]),
        (["--out", "file"], ["--out: found file, which is a file; must be a folder"]),
        (["cluster.blocks_per_rank=2"], ["cluster.blocks_per_rank: found 2; request"]),
    ],
)
def test_bad_input_is_told_before_anything_starts(
    made: type[Made],
    tmp_path: Path,
    words: list[str],
    problems: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, all of it said, nothing measured or written."""
    (tmp_path / "file").touch()
    assert main(words) == 2
    errors = capsys.readouterr().err
    assert all(problem in errors for problem in problems), errors
    assert made.asked == [] and profiles(tmp_path) == []


def test_ranks_that_fail_are_exit_1(
    made: type[Made], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the user's mistake, and no traceback; samples that there were are kept."""

    def fail(self: Made, size: object) -> StepSample:
        raise VertumnusError("rank 0 is gone")

    monkeypatch.setattr(Made, "steps", fail)
    assert main(QUICK) == 1
    assert "error: rank 0 is gone" in capsys.readouterr().err


def test_the_verb_becomes_the_program(tmp_path: Path) -> None:
    """``vertumnus profile`` is ``python -m vertumnus_profiling``, with its exit code."""
    command = [sys.executable, "-m", "vertumnus", "profile", "model"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "model: not an override" in done.stderr


def test_without_the_program_the_verb_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An installation without it is told, exit 2."""
    monkeypatch.setattr("vertumnus.commandline.applications.find_spec", lambda name: None)
    assert vertumnus(["profile", "model=tiny"]) == 2
    assert "vertumnus_profiling: not installed" in capsys.readouterr().err


def test_help_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    """Usage, flags, and what to do with the result."""
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    help_text = capsys.readouterr().out
    assert "usage: vertumnus profile" in help_text and "profile=NAME" in help_text


@pytest.mark.live
def test_a_whole_profile_on_real_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six sizes of nano at degree 2: samples and a profile of this machine; no rank is left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "SAMPLE_S", 0.02)
    monkeypatch.setattr(program, "find_spec", lambda name: None)
    before = ranks_started_by(os.getpid())  # other tests' engines
    words = ("model=nano", "cluster=four_ranks_cp2", "cluster.degrees=[2]", "backend.device=cpu")
    points = "--points=32,64,128,256,32+64,128+64"
    assert main((*words, points, "--repeats=1", "--force", "--no-capacity", "--out=made")) == 0
    assert set(ranks_started_by(os.getpid())) <= set(before)
    (path,) = (tmp_path / "made").glob("*.yaml")
    profile = read_profile(path)
    assert (profile.degrees, profile.block_tokens, profile.dtype) == ((2,), 32, "float32")
    assert profile.prefill_time().predict(2, 256, 0) > 100_000
    assert profile.handoff(256) > 0 and profile.decode_step_s > 0
    lines = [json.loads(line) for line in (path.with_suffix("") / "points.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    assert len({(step["uncached"], step["cached"]) for step in steps}) == 6
    assert all(step["wall_s"] > 0 and step["wall_ratio"] > 0 and step["cpu_ratio"] > 0 for step in steps)
