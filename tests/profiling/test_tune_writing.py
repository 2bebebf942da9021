"""The file of a tuned config: what it says to YAML, and what it says to people."""

from pathlib import Path

import msgspec
import yaml

from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.config import ManagerConfig
from vertumnus_profiling.tune.judge import Judgement
from vertumnus_profiling.tune.objectives import OBJECTIVES
from vertumnus_profiling.tune.writing import Origin, write_config

ORIGIN = Origin(
    command=("vertumnus", "tune", "workload.path='a b'"),
    date="2030-01-02",
    versions="vertumnus 9",
    workload="w",
    hardware="m on h",
    search="a..b",
    objective_name="attainment",
    objective=OBJECTIVES["attainment"],
    training=(0.8, 0.9),
    train=("seed 1",),
    judged=("seed 2", "seed 3"),
)
JUDGED = Judgement(0.81, 0.85, 0.04, 0.01, 0.07, ((0.81, 0.85),), "better")


def test_parts_within_parts_stay_readable_and_equal(tmp_path: Path) -> None:
    """Every key, nested ones too, with the untuned value beside those that changed; YAML reads it back."""
    part = CacheConfig(decay=0.5, manager=ManagerConfig(theta_intra=7.5))
    path = tmp_path / "cache" / "mine.yaml"
    untuned = {"decay": 0.6, "manager.theta_intra": 12.0, "manager.theta_reclaim": 0.3}
    write_config(path, part, untuned, ORIGIN, JUDGED)
    text = path.read_text()
    assert yaml.safe_load(text) == msgspec.to_builtins(part)
    assert "\ndecay: 0.5  # untuned 0.6\n" in text and "\n  theta_intra: 7.5  # untuned 12\n" in text
    assert "\n  theta_reclaim: 0.3\n" in text


def test_the_head_tells_where_the_numbers_come_from(tmp_path: Path) -> None:
    """Points for shares, the interval, the command as it can be typed again."""
    write_config(tmp_path / "mine.yaml", CacheConfig(), {}, ORIGIN, JUDGED)
    head = (tmp_path / "mine.yaml").read_text().partition("\nscan")[0]
    first = head.splitlines()[0]
    assert first == (
        "# Tuned for attainment on w, better than untuned on held-out slices (+4.00 points, +1.00 points to "
        "+7.00 points)."
    )
    for told in (
        "workload.path='\"'\"'a b'\"'\"''",
        "2030-01-02",
        "80.00 % untuned, 90.00 % tuned",
        "seed 2, seed 3",
    ):
        assert told in head, told
