"""Whole blocks only, and one token is always computed (cases 12 and 15)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.request import blocks_for, reusable_tokens

lengths, blocks, held = st.integers(1, 500), st.integers(1, 64), st.integers(0, 40)


@pytest.mark.parametrize(
    ("input_tokens", "held_blocks", "cached"),
    [(48, 3, 32), (49, 3, 48), (47, 2, 32), (40, 5, 32), (16, 1, 0), (17, 1, 16), (1, 0, 0), (1, 4, 0)],
)
def test_reusable_by_hand(input_tokens: int, held_blocks: int, cached: int) -> None:
    """With blocks of 16: a full hit gives its last block back, a partial block counts for nothing."""
    assert reusable_tokens(input_tokens, 16, held_blocks) == cached


@given(lengths, blocks, held)
def test_one_token_is_always_computed(length: int, block: int, held_blocks: int) -> None:
    """P is whole blocks, at most what is held, and R = L - P >= 1; one block more would break that."""
    cached = reusable_tokens(length, block, held_blocks)
    assert cached % block == 0
    assert 0 <= cached <= held_blocks * block
    assert length - cached >= 1
    assert cached + block > held_blocks * block or length - (cached + block) < 1


@given(lengths, blocks)
def test_blocks_hold_the_prompt_and_no_more(length: int, block: int) -> None:
    """The blocks of a prompt hold it, and one fewer would not."""
    needed = blocks_for(length, block)
    assert needed * block >= length > (needed - 1) * block
