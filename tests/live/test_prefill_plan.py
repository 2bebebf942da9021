"""A step's plan on one rank: who keeps what, and what is refused before any rank waits for another."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.request import blocks_for
from vertumnus.live.communicator import Solo
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.kv_store import KvLayout, allocate
from vertumnus.live.prefill import PrefillExecutor
from vertumnus.live.prefill_plan import (
    BlockWrite,
    CachedPiece,
    Placement,
    plan_work,
    problems,
    sends_queries,
)
from vertumnus.live.weights import build_model

NANO, CPU = MODEL_PRESETS["nano"], torch.device("cpu")
GROUP = CpGroup(2, 2)


def at(rank: int) -> Placement:
    """Return the place of *rank* in worker 2x2 with blocks of 4 tokens and 10 slots a rank."""
    return Placement(GROUP, rank, block_tokens=4, blocks_per_rank=10)


def a_work(
    input_tokens: int = 15, cached_tokens: int = 8, slots: tuple[int, ...] = (21, 35, 20, 39)
) -> StepWork:
    """Return a prompt of four blocks: the first and third on rank 2, the others on rank 3."""
    return StepWork(0, 0, input_tokens, cached_tokens, slots)


def test_hand_worked_plan() -> None:
    """Two cached blocks, one at each rank; the new blocks go to their owners, the last one partly filled."""
    assert plan_work(a_work(), at(2)).pieces == (CachedPiece((1,), 4), CachedPiece((5,), 4))
    assert plan_work(a_work(), at(2)).writes == (BlockWrite(slot=0, offset=0, tokens=range(4)),)
    assert plan_work(a_work(), at(3)).writes == (BlockWrite(slot=9, offset=0, tokens=range(4, 7)),)


def test_a_partly_cached_block_is_filled_up() -> None:
    """With six cached tokens the second block keeps two and gets two."""
    plan = plan_work(a_work(cached_tokens=6), at(3))
    assert plan.pieces == (CachedPiece((1,), 4), CachedPiece((5,), 2))
    assert plan.writes[0] == BlockWrite(slot=5, offset=2, tokens=range(2))


@given(st.integers(1, 60), st.data())
def test_every_token_is_kept_once(input_tokens: int, data: st.DataObject) -> None:
    """Over the ranks, cached pieces add up to P and writes to the uncached tokens, under any ownership."""
    cached = data.draw(st.integers(0, input_tokens - 1))
    slots = data.draw(st.permutations(range(20, 40)))[: blocks_for(input_tokens, 4)]
    plans = [plan_work(a_work(input_tokens, cached, tuple(slots)), at(rank)) for rank in GROUP.ranks]
    written = [token for plan in plans for write in plan.writes for token in write.tokens]
    assert sorted(written) == list(range(input_tokens - cached))
    assert all(sum(piece.tokens for piece in plan.pieces) == cached for plan in plans)


def test_queries_travel_when_few_are_new() -> None:
    """R <= 0.06 (P + R), and never at degree 1: 64 new on 16K cached, yes; 64 on 1,000, no; the edge, yes."""
    assert sends_queries(64, 16_384, 2)
    assert not sends_queries(64, 1_000, 2)
    assert not sends_queries(64, 16_384, 1)
    assert sends_queries(6, 94, 4)
    assert not sends_queries(6, 93, 4)


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (a_work(cached_tokens=15), "15 cached tokens of 15; one must be uncached"),
        (a_work(slots=(21, 35, 20)), "3 slots for 4 blocks of 4 tokens"),
        (a_work(slots=(21, 35, 20, 40)), "slots [40] lie outside the worker 2x2"),
        (a_work(slots=(19, 35, 20, 39)), "slots [19] lie outside the worker 2x2"),
        (a_work(input_tokens=16), "16 tokens, the model takes at most 15"),
    ],
)
def test_works_that_cannot_be_are_told(work: StepWork, problem: str) -> None:
    """Each problem names the request, what was found and what is allowed."""
    assert list(problems(work, at(2), max_position=15)) == [f"request 0: {problem}"]


class _NoCollective(Solo):
    def all_gather(self, mine_n: torch.Tensor) -> torch.Tensor:
        raise AssertionError("entered a collective")


def run(works: tuple[StepWork, ...], ids: list[int], group: CpGroup) -> None:
    """Run a step on rank 2 alone, with a communicator that must not be used."""
    store = allocate(KvLayout.of_model(NANO), 10, 4, CPU)
    executor = PrefillExecutor(build_model(NANO, None, 0, CPU), store, 2, 10)
    executor.run(works, {0: torch.tensor(ids)}, group, _NoCollective())


@pytest.mark.parametrize(
    ("works", "ids", "group", "problem"),
    [
        ((a_work(4, 0, (21,)),), [1, 2, 3], CpGroup(2, 1), r"\[3\] token ids for 4 uncached tokens"),
        ((a_work(2, 0, (21,)),), [1, 512], CpGroup(2, 1), r"token ids must be 0 \.\. 511"),
        ((a_work(2, 0, (21,)),), [-1, 5], CpGroup(2, 1), r"token ids must be 0 \.\. 511"),
        ((), [], CpGroup(2, 1), "at least one request"),
        ((a_work(2, 0, (21,)),), [1, 2], GROUP, "rank 2 is number 0 of 1 .* the step is for worker 2x2"),
        ((StepWork(9, 0, 1, 0, (21,)),), [1], CpGroup(2, 1), "request 9: no token ids for 1 uncached"),
    ],
)
def test_a_wrong_step_ends_before_the_first_collective(
    works: tuple[StepWork, ...], ids: list[int], group: CpGroup, problem: str
) -> None:
    """In a collective ranks that disagree would abort; here the caller gets an error."""
    with pytest.raises(ProtocolError, match=problem):
        run(works, ids, group)
