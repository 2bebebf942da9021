"""Plain trees of configs: jobs that differ in their seed alone share one, numbered keys can be taken away."""

from collections.abc import Sequence

import pytest
from omegaconf import DictConfig

from vertumnus.commandline import hydra_configs
from vertumnus.commandline.hydra_configs import composed, composed_tree, plain_tree
from vertumnus.domain.errors import ConfigError

WORDS = ("+experiment=tool_agent", "backend=sim", "++workload.requests=20")


def test_seeds_share_what_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seeds, one composition, and the trees of three."""
    with hydra_configs.hydra_configs():
        expected = [plain_tree(composed((*WORDS, f"++seed={seed}"))) for seed in (1, 2, 3)]
        asked: list[Sequence[str]] = []
        compose = hydra_configs.with_sweep

        def noted(words: Sequence[str]) -> DictConfig:
            asked.append(words)
            return compose(words)

        monkeypatch.setattr(hydra_configs, "with_sweep", noted)
        assert [composed_tree((*WORDS, f"++seed={seed}")) for seed in (1, 2, 3)] == expected
    assert asked == [WORDS]


def test_a_value_that_refers_to_the_seed_is_composed_for_each() -> None:
    """Nothing is shared then."""
    with hydra_configs.hydra_configs():
        names = [composed_tree((*WORDS, "++name=run-${seed}", f"++seed={seed}"))["name"] for seed in (1, 2)]
    assert names == ["run-1", "run-2"]


def test_a_numbered_key_can_be_taken_away() -> None:
    """As of a degree; one that is not there is told with those that are."""
    words = ("+experiment=reconfigure", "~profile.capacity.8")
    with hydra_configs.hydra_configs():
        assert list(composed_tree(words)["profile"]["capacity"]) == [4]
        with pytest.raises(
            ConfigError, match=r"~profile\.capacity\.2: no such key; profile\.capacity has 4, 8"
        ):
            composed_tree(("+experiment=reconfigure", "~profile.capacity.2"))
