"""A length threshold that sorts nothing is told before a run begins, or refused."""

from pathlib import Path

import pytest

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.run.plan import plan
from vertumnus.run.stream import load_stream, threshold_note

STATIC = "policy=static"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Prompts of 600 and of 1,200 tokens."""
    path = tmp_path / "trace.jsonl"
    rows = (
        f'{{"timestamp": {n * 1000}, "input_length": {600 * (1 + n % 2)}, "output_length": 1, '
        f'"hash_ids": {[n, n + 99, n + 999][: 2 + n % 2]}}}\n'
        for n in range(6)
    )
    path.write_text("".join(rows))
    return path


def a_config(trace: Path, *words: str) -> RunConfig:
    """A simulated run of *trace*."""
    named = ("+experiment=conversation", "backend=sim", f"workload.path={trace}", "arrival=trace")
    with hydra_configs():
        return to_run_config(plain_tree(composed((*named, *words))))


@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        ((STATIC, "policy.length_threshold=599"), True),
        ((STATIC, "policy.length_threshold=600"), False),
        ((STATIC, "policy.length_threshold=1199"), False),
        (("policy=paper",), False),
    ],
)
def test_a_threshold_below_every_prompt_is_told(trace: Path, words: tuple[str, ...], is_told: bool) -> None:
    """The run goes on, since that is a policy too: all to the largest degree. A plan says it likewise."""
    config = a_config(trace, *words)
    note = threshold_note(config, load_stream(config))
    assert (note is not None) is is_told
    assert ("the shortest prompt has 600 tokens, so all go to the largest degree" in plan(config)) is is_told


def test_a_threshold_above_every_prompt_is_refused(trace: Path) -> None:
    """No prompt would go to the largest degree: key, found and allowed."""
    config = a_config(trace, STATIC, "policy.length_threshold=1200")
    with pytest.raises(ConfigError, match="found 1200, but prompts have 600 to 1,200 tokens"):
        load_stream(config)
