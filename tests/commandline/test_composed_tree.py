"""Jobs that differ in their seed alone are composed once, and come out as if each had been."""

import pytest

from vertumnus.commandline import hydra_configs
from vertumnus.commandline.hydra_configs import composed, composed_tree, plain_tree

WORDS = ("+experiment=tool_agent", "backend=sim", "++workload.requests=20")


def test_seeds_share_what_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seeds, one composition, and the trees of three."""
    with hydra_configs.hydra_configs():
        expected = [plain_tree(composed((*WORDS, f"++seed={seed}"))) for seed in (1, 2, 3)]
        asked = []
        compose = hydra_configs.with_sweep
        monkeypatch.setattr(hydra_configs, "with_sweep", lambda words: asked.append(words) or compose(words))
        assert [composed_tree((*WORDS, f"++seed={seed}")) for seed in (1, 2, 3)] == expected
    assert asked == [WORDS]


def test_a_value_that_refers_to_the_seed_is_composed_for_each() -> None:
    """Nothing is shared then."""
    with hydra_configs.hydra_configs():
        names = [composed_tree((*WORDS, "++name=run-${seed}", f"++seed={seed}"))["name"] for seed in (1, 2)]
    assert names == ["run-1", "run-2"]
