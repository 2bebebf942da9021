"""Slices to train and to judge on: how they are written, and that they hold different requests."""

import pytest
from msgspec import structs

from tests.profiling.test_tune_space import a_config
from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus_profiling.tune.slices import Slice, read_slices, require_apart


def test_seeds_and_stretches_of_time() -> None:
    """Lists, ranges with both ends, seconds of the trace."""
    assert read_slices("seed:4,10..12", "--train") == tuple(map(Slice, (4, 10, 11, 12)))
    assert read_slices("time:0..600,600..1200.5", "--judge") == (
        Slice(None, 0, 600),
        Slice(None, 600, 1200.5),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2,3", "must be seed:1,2,3 or seed:1..3"),
        ("seed:", "must be seed:"),
        ("seeds:1", "must be seed:"),
        ("seed:1,x", "where 'x' is no seed"),
        ("seed:3..1", "where '3..1' is no range"),
        ("seed:0..5000", "is no range of at most 1,000 seeds"),
        ("seed:1..3,2", "names seed 2 twice"),
        ("time:600..0", "where '600..0' does not end after it starts"),
        ("time:0", "where '0' is no stretch of time"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_forms(text: str, said: str) -> None:
    """The flag comes first."""
    with pytest.raises(ConfigError) as caught:
        read_slices(text, "--train")
    assert str(caught.value).startswith("--train: found ") and said in str(caught.value)


def test_a_slice_changes_seed_or_window_and_nothing_else() -> None:
    """The tree that it is made of stays as it is."""
    tree = {"seed": 0, "workload": {"name": "w", "start_s": 0.0, "duration_s": None}}
    assert Slice(7).of(tree) == {**tree, "seed": 7}
    later = Slice(None, 600, 900).of(tree)
    assert later == {"seed": 0, "workload": {"name": "w", "start_s": 600, "duration_s": 300}}
    assert tree["workload"]["duration_s"] is None


def replayed() -> RunConfig:
    """A config that replays a file."""
    config = a_config()
    return structs.replace(config, workload=structs.replace(config.workload, generator=None, path="t.jsonl"))


@pytest.mark.parametrize(
    ("train", "judge", "words", "problem"),
    [
        ("seed:1,2", "seed:3,4", (), None),
        ("seed:1,2", "seed:2,3", (), "--judge: seed 2 shares requests with --train seed 2"),
        ("time:0..60", "time:60..90", (), None),
        ("time:0..60", "time:59..90", (), "--judge: time 59..90 shares requests with --train time 0..60"),
        ("seed:1", "time:60..90", ("seed=0",), None),
        ("seed:0", "time:60..90", ("seed=0",), "--judge: time 60..90 shares requests with --train seed 0"),
        ("seed:1", "seed:2", ("workload=phases",), None),
    ],
)
def test_judged_requests_are_others(
    train: str, judge: str, words: tuple[str, ...], problem: str | None
) -> None:
    """The same seed and overlapping times share requests; neighbouring seeds share none."""
    slices = read_slices(train, "--train"), read_slices(judge, "--judge")
    if problem is None:
        require_apart(*slices, a_config(*words))
    else:
        with pytest.raises(ConfigError, match=problem):
            require_apart(*slices, a_config(*words))


def test_a_file_has_no_seeds() -> None:
    """Its requests are the same for every seed; its time is what can be cut."""
    with pytest.raises(ConfigError, match=r"every seed replays the same requests of t.jsonl"):
        require_apart((Slice(1),), (Slice(2),), replayed())
    require_apart((Slice(None, 0, 60),), (Slice(None, 60, 90),), replayed())
