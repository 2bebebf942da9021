"""A sweep: which points it wants, when a point has enough, what is kept, and what its samples say."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.errors import ConfigError
from vertumnus.live.bench import DECODE_TOKENS, StepTiming
from vertumnus.live.config import MODEL_PRESETS
from vertumnus_profiling.conclude import clock_of, conclude
from vertumnus_profiling.grid import Size, SweepPoint, points_of, sizes_of
from vertumnus_profiling.options import read_options
from vertumnus_profiling.samples import SampleFile, StepSample, SweepSettings, TailSample
from vertumnus_profiling.schedule import MOST_TRIES, Schedule, measured_points
from vertumnus_profiling.sweep import missing_tails, plan_for, step_sample

NANO = MODEL_PRESETS["nano"]
SHORT, LONG = SweepPoint(1, 64, 0), SweepPoint(1, 256, 32)
QUIET, DISTURBED = 0.05, 0.5
SETTINGS = SweepSettings(
    model=NANO, hardware="h", device="cpu", block_tokens=16, weights=None, versions={"torch": "2"}
)


def sample(
    point: SweepPoint, others: float | None = QUIET, seconds: float = 0.01, yard_s: float = 0.1
) -> StepSample:
    """Three prefills of *point* beside yardsticks of *yard_s*; half of it all is CPU time."""
    ratio = seconds / yard_s
    return StepSample(*point, 3, seconds, ratio, yard_s, seconds / 2, ratio, yard_s / 2, others)


def drawn(schedule: Schedule, others: float | None, count: int) -> list[SweepPoint | None]:
    """The next *count* points, each sampled with *others* meanwhile."""
    points = []
    for _ in range(count):
        points.append(schedule.next())
        if points[-1] is not None:
            schedule.note(sample(points[-1], others))
    return points


def test_rounds_go_over_all_points() -> None:
    """Two quiet samples each, in turns: a busy spell hits no point alone."""
    schedule = Schedule([SHORT, LONG], 2)
    assert (schedule.done, schedule.total) == (0, 4)
    assert drawn(schedule, QUIET, 5) == [SHORT, LONG, SHORT, LONG, None]
    assert schedule.done == 4


def test_a_disturbed_point_is_measured_again_and_not_for_ever() -> None:
    """Samples beside others' work do not count; three times as many tries as repeats end it."""
    schedule = Schedule([SHORT], 2)
    assert drawn(schedule, DISTURBED, 1) == [SHORT]
    assert drawn(schedule, QUIET, 3) == [SHORT, SHORT, None]
    schedule = Schedule([SHORT], 2)
    assert drawn(schedule, DISTURBED, 7) == [SHORT] * (2 * MOST_TRIES) + [None]
    assert schedule.done == schedule.total


@given(st.lists(st.booleans(), max_size=60))
def test_progress_never_goes_back_nor_beyond_the_end(quiet: list[bool]) -> None:
    """Whatever others do meanwhile, done rises to total, and is total only when nothing is wanted."""
    schedule, before = Schedule([SHORT, LONG], 3), 0
    for is_quiet in quiet:
        drawn(schedule, QUIET if is_quiet else DISTURBED, 1)
        assert before <= schedule.done <= schedule.total
        before = schedule.done
    assert (schedule.next() is None) == (before == schedule.total)


def test_what_was_measured_before_is_skipped() -> None:
    """Known samples count, those of points that are not wanted now do not matter."""
    known = [sample(SHORT), sample(SHORT), sample(SweepPoint(4, 1, 0))]
    schedule = Schedule([SHORT, LONG], 2, known)
    assert schedule.done == 2
    assert drawn(schedule, None, 3) == [LONG, LONG, None]


def test_a_point_is_the_median_of_its_quiet_samples() -> None:
    """1, 9 and 2 ms make 2 ms, whatever a disturbed 7 s says; without a quiet one all of them count."""
    samples = [sample(SHORT, QUIET, seconds) for seconds in (0.001, 0.009, 0.002)]
    (found,) = measured_points([SHORT, LONG], [*samples, sample(SHORT, DISTURBED, 7.0)])
    assert (found.wall_s, found.cpu_per_rank_s) == (pytest.approx(0.002), pytest.approx(0.001))
    assert found.is_quiet
    (found,) = measured_points([SHORT], [sample(SHORT, DISTURBED, seconds) for seconds in (0.2, 0.1)])
    assert (found.wall_s, found.is_quiet) == (pytest.approx(0.15), False)
    assert found.cpu_per_rank_s == pytest.approx(0.075)


def test_what_slows_a_point_and_the_yardstick_alike_cancels() -> None:
    """Two of three samples of 20 ms in a spell at half speed: 20 ms at the sweep's usual speed, not 40."""
    slow = [sample(SHORT, seconds=0.04, yard_s=0.2)] * 2
    usual = [sample(LONG, seconds=0.3, yard_s=0.1)] * 4
    short, long = measured_points([SHORT, LONG], [*slow, sample(SHORT, seconds=0.02), *usual])
    assert (short.wall_s, short.cpu_per_rank_s) == (pytest.approx(0.02), pytest.approx(0.01))
    assert long.wall_s == pytest.approx(0.3)


def test_each_degree_has_a_yardstick_of_its_own() -> None:
    """Half a yardstick is 50 ms at degree 1 and 30 ms at degree 2."""
    wide = SweepPoint(2, 64, 0)
    samples = [sample(SHORT, seconds=0.05), sample(wide, seconds=0.03, yard_s=0.06)]
    assert [found.wall_s for found in measured_points([SHORT, wide], samples)] == [
        pytest.approx(0.05),
        pytest.approx(0.03),
    ]


def test_a_sample_is_in_yardsticks_by_hand() -> None:
    """2 s between yards of 1 and 3 s is one yardstick, 6 s between 3 and 3 s two; medians of both."""
    timings = [StepTiming(2.0, 1.0), StepTiming(6.0, 2.0)]
    yards = [StepTiming(1.0, 0.5), StepTiming(3.0, 0.5), StepTiming(3.0, 0.5)]
    found = step_sample(2, Size(64, 32), timings, yards, None)
    assert (found.wall_s, found.wall_ratio, found.wall_yard_s) == (4.0, 1.5, 3.0)
    assert (found.cpu_s, found.cpu_ratio, found.cpu_yard_s) == (1.5, 3.0, 0.5)
    assert (found.degree, found.uncached, found.cached, found.steps) == (2, 64, 32, 2)


def test_tails_are_the_shortest_and_the_longest() -> None:
    """Each as often as asked, less what is there already; a size's P does not make a prompt longer."""
    sizes = [Size(64, 0), Size(512, 0), Size(64, 4_096)]
    assert missing_tails([], sizes, 2) == [64, 512, 64, 512]
    assert missing_tails([TailSample(64, 0.1, 0.2, None)], sizes, 2) == [512, 64, 512]


def test_samples_survive_a_kill(tmp_path: Path) -> None:
    """Every appended sample is there on the next start; a torn last line is cut off and overwritten."""
    file = SampleFile(tmp_path, SETTINGS, "2030-01-02")
    file.append(sample(SHORT))
    file.append(TailSample(64, 0.1, 0.2, None))
    file.close()
    with file.path.open("ab") as torn:
        torn.write(b'{"kind":"step","degree":')
    again = SampleFile(tmp_path, SETTINGS, "2030-03-04")
    assert again.samples == [sample(SHORT), TailSample(64, 0.1, 0.2, None)]
    assert again.header.started_at == "2030-01-02"
    again.append(sample(LONG))
    again.close()
    third = SampleFile(tmp_path, SETTINGS, "2030-03-04")
    assert third.samples[-1] == sample(LONG)
    assert third.finish() == tmp_path / "points.jsonl"
    fresh = SampleFile(tmp_path, SETTINGS, "2030-05-06")
    assert (fresh.samples, fresh.header.started_at) == ([], "2030-05-06")
    fresh.close()


def test_other_settings_are_another_sweep(tmp_path: Path) -> None:
    """Samples of another model or library never join; the same settings are one writer's at a time."""
    file = SampleFile(tmp_path, SETTINGS, "2030-01-02")
    other = SampleFile(tmp_path, msgspec.structs.replace(SETTINGS, versions={"torch": "3"}), "2030-01-02")
    assert file.path != other.path
    with pytest.raises(ConfigError, match="another vertumnus profile is measuring into it"):
        SampleFile(tmp_path, SETTINGS, "2030-01-02")
    file.path.write_text('{"kind": "nothing"}\n')
    file.close()
    with pytest.raises(ConfigError, match="not the samples of a sweep"):
        SampleFile(tmp_path, SETTINGS, "2030-01-02")
    other.close()


def test_named_grids_fit_model_and_blocks() -> None:
    """P is cut to whole blocks; what the model cannot hold is left out; too little left is an error."""
    sizes = sizes_of("full", NANO, 48)
    assert all(size.cached % 48 == 0 for size in sizes) and Size(64, 480) in sizes
    short = msgspec.structs.replace(NANO, max_position=1_100)
    assert max(size.uncached + size.cached for size in sizes_of("full", short, 32)) <= 1_100 - 16
    with pytest.raises(
        ConfigError, match=r"--points: found 2 that model nano can hold, a fit needs at least 6"
    ):
        sizes_of("64+0,128", NANO, 32)


def test_every_bad_pair_is_told() -> None:
    """What was found, and what it must be."""
    with pytest.raises(ConfigError) as caught:
        sizes_of("0+0,64+33,x,64+40000", NANO, 32)
    assert caught.value.problems == (
        "--points: found 0+0, R must be at least 1",
        "--points: found 64+33, P must be whole blocks of 32 tokens",
        "--points: found 'x', must be quick, full or pairs R+P as in 256+0,256+1024",
        "--points: found 64+40000, R + P must be at most 32752 for model nano",
    )


def test_clocks_are_wall_time_up_to_the_cores() -> None:
    """Ranks beyond the cores wait for one another; a rank with its own device never does."""
    assert [clock_of(degree, 2, "auto") for degree in (1, 2, 4)] == ["wall", "wall", "cpu"]
    assert clock_of(1, 2, "cpu") == "cpu"
    assert clock_of(8, None, "auto") == "wall"
    with pytest.raises(ConfigError, match="--clock: found cpu, but the ranks compute on devices"):
        clock_of(1, None, "cpu")


def test_each_degree_is_fitted_by_its_clock() -> None:
    """On two cores CP1 takes the wall time, CP4 the CPU time of a rank."""
    wanted = points_of([Size(64 * k, 0) for k in range(1, 7)], (1, 4))
    samples = [sample(point, QUIET, point.uncached / 1_000) for point in wanted]
    measured = conclude(wanted, [*samples, TailSample(64, 0.1, 0.42, None)], cores=2)
    assert measured.clocks == {1: "wall", 4: "cpu"}
    assert [point.seconds for point in measured.points[::6]] == [0.064, 0.032]
    assert measured.tail.handoff_base_s == 0.1
    assert measured.tail.decode_step_s == pytest.approx(0.02)


def test_ranks_are_planned_for_one_worker_and_the_longest_prompt() -> None:
    """160 tokens in blocks of 32 are five blocks, three on each of two ranks; one decode rank holds it."""
    options = read_options(["model=nano", "cluster.degrees=[1,2]", "backend.device=cpu"])
    plan = plan_for(options.config, options.model, options.live, 2, 160)
    assert (plan.lattice.gpus, [worker.degree for worker in plan.workers]) == (2, [2])
    assert (plan.block_tokens, plan.blocks_per_rank) == (32, 3)
    assert (plan.decode_ranks, plan.decode_tokens) == (1, 160 + DECODE_TOKENS)
