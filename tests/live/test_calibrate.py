"""What a calibration makes of its timings, worked by hand; and which points it takes."""

from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.live_driver import BLOCKS_PER_RANK, LEFT, PAIR, a_plan
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.domain.facts import DecodeRankLost, RankLost
from vertumnus.domain.jobs import JobError
from vertumnus.live.bench import DECODE_TOKENS, Bench, Point, StepTiming, TailTiming, points_of, slots_of
from vertumnus.live.calibrate import Round, conclude
from vertumnus.live.config import CalibrationConfig
from vertumnus.live.coordinator import Client
from vertumnus.live.plan import LivePlan

POINTS = [Point(LEFT, 100, 0), Point(LEFT, 200, 0), Point(PAIR, 200, 0)]


def planned(*points: tuple[int, int]) -> LivePlan:
    """The default plan with these calibration points."""
    plan = a_plan()
    return replace(plan, live=replace(plan.live, calibration=CalibrationConfig(points=points)))


def a_round(slowness: float, busy_share: float | None, handoffs_s: tuple[float, float]) -> Round:
    """Steps of 10, 20 and 12 ms times *slowness*; 16 tokens take 32 ms after either hand-off."""
    steps = [StepTiming(wall_s * slowness, wall_s / 2) for wall_s in (0.010, 0.020, 0.012)]
    tails = [
        TailTiming(tokens, copied_s, copied_s + 0.032)
        for tokens, copied_s in zip((100, 200), handoffs_s, strict=True)
    ]
    return Round(steps, tails, busy_share)


def test_fastest_times_count() -> None:
    """A round three times as slow leaves no trace: each time is the least of all rounds."""
    rounds = [a_round(3.0, 0.6, (0.004, 0.009)), a_round(1.0, 0.05, (0.005, 0.007))]
    found = conclude(a_plan(), POINTS, rounds)
    model = found.profile.prefill_time()
    assert model.predict(1, 100, 0) == pytest.approx(10e6, rel=1e-3)
    assert model.predict(1, 200, 0) == pytest.approx(20e6, rel=1e-3)
    assert model.predict(2, 200, 0) == pytest.approx(12e6, rel=1e-3)
    assert found.fit.mean_error < 1e-3
    assert found.busy_share == 0.05


def test_handoff_is_a_line_through_its_two_ends() -> None:
    """4 ms for 100 tokens and 7 ms for 200 are 30 µs a token on a base of 1 ms."""
    rounds = [a_round(1.0, None, (0.004, 0.009)), a_round(1.0, None, (0.005, 0.007))]
    profile = conclude(a_plan(), POINTS, rounds).profile
    assert profile.handoff_per_token_s == pytest.approx(30e-6)
    assert profile.handoff_base_s == pytest.approx(1e-3)


def test_decode_step_is_measured_from_the_job_on() -> None:
    """The least whole time less the least hand-off, over 16 tokens: answers seen late make it no shorter."""
    late = Round(
        a_round(1.0, None, (0.004, 0.007)).steps,
        [TailTiming(100, 0.036, 0.036), TailTiming(200, 0.039, 0.039)],
        None,
    )
    profile = conclude(a_plan(), POINTS, [a_round(1.0, None, (0.004, 0.007)), late]).profile
    assert profile.decode_step_s == pytest.approx(0.032 / DECODE_TOKENS)


def test_cpu_time_counts_every_rank() -> None:
    """Half of the wall time on each rank is once the wall time for the two ranks of degree 2."""
    found = conclude(a_plan(), POINTS, [a_round(1.0, None, (0.004, 0.007))])
    assert found.cpu_s(1, 200, 0) == pytest.approx(0.010, rel=1e-3)
    assert found.cpu_s(2, 200, 0) == pytest.approx(0.012, rel=1e-3)


def test_points_are_those_that_fit_each_degree() -> None:
    """P is cut to whole blocks of 16; a prompt of more blocks than a degree-1 worker has is for the others.

    Degree 4, which no worker has yet, is timed on all four ranks.
    """
    too_long = (BLOCKS_PER_RANK + 1) * 16
    assert points_of(planned((10, 0), (10, 40), (too_long, 0))) == [
        Point(CpGroup(2, 1), 10, 0),
        Point(CpGroup(2, 1), 10, 32),
        Point(PAIR, 10, 0),
        Point(PAIR, 10, 32),
        Point(PAIR, too_long, 0),
        *(Point(CpGroup(0, 4), *size) for size in ((10, 0), (10, 32), (too_long, 0))),
    ]


def test_no_point_that_fits_is_the_users_to_mend() -> None:
    """The message names the points and what a worker holds."""
    with pytest.raises(ConfigError, match=r"backend\.calibration\.points: none of \[\(100000, 0\)\] fits"):
        points_of(planned((100_000, 0)))


def test_slots_go_round_the_ranks() -> None:
    """Block i of a timed prompt lies on rank i mod C."""
    assert slots_of(a_plan(), PAIR, 50) == (0, BLOCKS_PER_RANK, 1, BLOCKS_PER_RANK + 1)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (RankLost(0, 1, 0, "killed by SIGKILL"), "prefill rank 1 was lost while it was timed: killed by SIG"),
        (DecodeRankLost(0, 0, 0, "killed by SIGKILL"), "decode rank 0 was lost while it was timed"),
        (JobError(0, -1, "rank 0: torn"), "a timed job failed: rank 0: torn"),
    ],
)
def test_what_breaks_a_timing_is_told_in_words(told, says: str) -> None:
    """A rank that dies, or a step that fails, ends the calibration with a message for people."""
    client = Client(lambda request_id: np.zeros(0, np.int64), lambda request_id, tokens: None)
    engine = SimpleNamespace(
        plan=a_plan(), first_epoch=0, client=client, submit=lambda job: None, next=lambda: told
    )
    with pytest.raises(VertumnusError, match=says):
        Bench(engine, 100).time_step(Point(LEFT, 40, 0))  # type: ignore[arg-type]
