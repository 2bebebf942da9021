"""The rule by which greedy outputs count as equal forgives near ties and nothing else."""

import torch

from tests.support.outputs import first_difference

# step 0 is clear, step 1 a near tie of tokens 0 and 2, step 2 is clear
LOGITS = torch.tensor([[3.0, 1.0, 0.0], [2.0, 0.0, 1.99995], [0.0, 5.0, 1.0]])
REFERENCE = [0, 0, 1]


def test_equal_outputs_have_no_difference() -> None:
    """The same tokens agree."""
    assert first_difference([0, 0, 1], REFERENCE, LOGITS) is None


def test_a_near_tie_may_go_either_way_and_ends_the_comparison() -> None:
    """After another choice between two equals the texts differ, as they must."""
    assert first_difference([0, 2, 2], REFERENCE, LOGITS) is None


def test_a_clear_choice_may_not_change() -> None:
    """The step of the first departure is returned, before a near tie or after one that agreed."""
    assert first_difference([1, 0, 1], REFERENCE, LOGITS) == 0
    assert first_difference([0, 0, 2], REFERENCE, LOGITS) == 2
