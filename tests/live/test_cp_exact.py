"""Context-parallel prefill computes what one rank and HF's Qwen3 compute, whoever owns the blocks."""

import random
from collections.abc import Iterator
from functools import cache
from itertools import count

import pytest
import torch
from torch import Tensor
from transformers import Qwen3ForCausalLM

from tests.support.cp_ranks import BLOCK_TOKENS, BLOCKS_PER_RANK, SEED, CpRanks
from tests.support.outputs import first_difference
from tests.support.qwen3_reference import Reference, greedy, hf_model, reference
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.request import blocks_for
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.decode_batch import DecodeBatch
from vertumnus.live.prefill_plan import sends_queries
from vertumnus.live.weights import build_model, random_weights

pytestmark = pytest.mark.live

CONFIG = MODEL_PRESETS["tiny"]
TOLERANCE = 2e-5
CPU = torch.device("cpu")


@cache
def hf() -> Qwen3ForCausalLM:
    """Return HF's model with the weights that every rank draws."""
    return hf_model(CONFIG, random_weights(CONFIG, SEED))


@cache
def long_text() -> Reference:
    """Return the text that most prompts begin with."""
    return reference(hf(), 2_112, seed=1)


@cache
def other_text() -> Reference:
    """Return a text that shares nothing with the long one."""
    return reference(hf(), 300, seed=2)


class Bench:
    """A CP group with its block slots, and the worst differences from HF that were seen."""

    def __init__(self, ranks: CpRanks) -> None:
        self.ranks = ranks
        self.model = build_model(CONFIG, None, SEED, CPU)
        self.worst_logit = self.worst_kv = 0.0
        self._random = random.Random(5)
        self._ids = count()
        self._free: list[list[int]] = []
        self.reset()
        self.prefix = self.take_slots(128)
        """Slots of the first 2,048 tokens of the long text, at owners drawn at random."""
        self.prefill([self.work(long_text(), 2_048, 0, self.prefix)])
        self.reset()

    def reset(self) -> None:
        """Make every slot free again, except for those of the prefix."""
        kept = set(getattr(self, "prefix", ()))
        own = [
            range(rank * BLOCKS_PER_RANK, (rank + 1) * BLOCKS_PER_RANK) for rank in range(self.ranks.degree)
        ]
        self._free = [[slot for slot in slots if slot not in kept] for slots in own]
        for free in self._free:
            self._random.shuffle(free)

    def take_slots(self, blocks: int, owner: int | None = None) -> tuple[int, ...]:
        """Return free slots of *owner*, or each of an owner drawn at random."""
        owners = self._free if owner is None else [self._free[owner]]
        return tuple(self._random.choice(owners).pop() for _ in range(blocks))

    def work(
        self, source: Reference, input_tokens: int, cached: int, slots: tuple[int, ...] = ()
    ) -> tuple[StepWork, Reference]:
        """Return a prompt of *source* whose first blocks lie in *slots*, the others in fresh ones."""
        missing = blocks_for(input_tokens, BLOCK_TOKENS) - len(slots)
        slots = (*slots, *self.take_slots(missing))
        return StepWork(next(self._ids), 0, input_tokens, cached, slots), source

    def hit(self, uncached: int, cached: int) -> tuple[StepWork, Reference]:
        """Return a prompt that finds *cached* tokens in the prefix."""
        return self.work(long_text(), cached + uncached, cached, self.prefix[: cached // BLOCK_TOKENS])

    def prefill(self, prompts: list[tuple[StepWork, Reference]]) -> list[Tensor]:
        """Run one step and return the difference of each prompt's final logits from HF's."""
        works = [work for work, _ in prompts]
        tokens = {w.request_id: source.tokens_S[w.cached_tokens : w.input_tokens] for w, source in prompts}
        self.final = self.ranks.step(works, tokens)
        return [
            self.model.logits(self.final[work.request_id]) - source.logits_SV[work.input_tokens - 1]
            for work, source in prompts
        ]

    def check(self, prompts: list[tuple[StepWork, Reference]]) -> None:
        """Run one step; final logits and the stored KV of all positions must equal HF's."""
        self.worst_logit = max(self.worst_logit, *(float(d.abs().max()) for d in self.prefill(prompts)))
        for work, source in prompts:
            stored = self.ranks.read(work.slots, work.input_tokens)
            difference = float((stored - source.kv_LSW[:, : work.input_tokens]).abs().max())
            self.worst_kv = max(self.worst_kv, difference)
            shape = f"R={work.input_tokens - work.cached_tokens} P={work.cached_tokens}"
            assert self.worst_logit <= TOLERANCE, shape
            assert self.worst_kv <= TOLERANCE, shape
        self.reset()


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda degree: f"CP{degree}")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ranks = CpRanks(CONFIG, request.param, tmp_path_factory.mktemp("maps"))
    bench = Bench(ranks)
    yield bench
    ranks.close()
    torch.set_num_threads(threads)
    print(f"\nC={request.param}: worst difference: {bench.worst_logit:.1e} logits, {bench.worst_kv:.1e} KV")


def test_prompts_without_a_prefix_equal_hf_at_every_length(bench: Bench) -> None:
    """Empty and short chunks, whole and partial last blocks change nothing."""
    for length in [*range(1, 4 * bench.ranks.degree + 4), 127, 128, 1_000, 2_047, 2_053]:
        bench.check([bench.work(long_text(), length, 0)])


def test_cached_blocks_may_lie_at_any_owner(bench: Bench) -> None:
    """Gathered keys and passed queries both equal HF, down to R = 1 and a full hit's last block."""
    shapes = [
        (1, 16),
        (3, 16),
        (1, 2_032),
        (16, 2_032),
        (15, 1_024),
        (64, 1_024),
        (70, 1_024),
        (1_000, 1_024),
    ]
    passed = {sends_queries(uncached, cached, bench.ranks.degree) for uncached, cached in shapes}
    assert passed == ({False} if bench.ranks.degree == 1 else {False, True})
    for uncached, cached in shapes:
        bench.check([bench.hit(uncached, cached)])


def test_a_prefix_may_end_inside_a_block(bench: Bench) -> None:
    """The rest of a partly cached block is written behind what is there."""
    slots = bench.take_slots(3)
    bench.prefill([bench.work(long_text(), 21, 0, slots[:2])])
    bench.check([bench.work(long_text(), 40, 21, slots)])


def test_one_owner_may_hold_the_whole_prefix(bench: Bench) -> None:
    """Ranks without a piece of the prefix take part with nothing to say."""
    for uncached in (1, 20, 200):
        slots = bench.take_slots(32, owner=bench.ranks.degree - 1)
        bench.prefill([bench.work(long_text(), 512, 0, slots)])
        bench.check([bench.work(long_text(), 512 + uncached, 512, slots)])


def test_works_of_one_step_do_not_see_each_other(bench: Bench) -> None:
    """Cold, warm and pass-Q works of different and shared prompts in one step each equal HF."""
    bench.check(
        [
            bench.hit(1, 1_024),
            bench.work(other_text(), 257, 0),
            bench.hit(300, 512),
            bench.work(other_text(), 1, 0),
        ]
    )
    bench.check([bench.hit(2, 2_032), bench.hit(5, 1_024)])


@pytest.mark.parametrize("uncached", [1, 100])
def test_a_zeroed_cached_key_shows(bench: Bench, uncached: int) -> None:
    """Negative control: one damaged key among 48 moves the logits by more than 500 times the tolerance."""
    slots = bench.take_slots(3)
    bench.prefill([bench.work(other_text(), 48, 0, slots)])
    bench.ranks.zero_key(slots[1], 7)
    (difference,) = bench.prefill([bench.work(other_text(), 48 + uncached, 48, slots)])
    bench.reset()
    assert float(difference.abs().max()) >= 1e-2


def test_greedy_outputs_after_prefix_hits_equal_hf_generate(bench: Bench) -> None:
    """Prefill with a hit, hand-off out of the owners' blocks, batched decoding: the text is HF's."""
    prompts = [bench.hit(9, 1_024), bench.hit(33, 512), bench.work(other_text(), 40, 0)]
    bench.prefill(prompts)
    batch = DecodeBatch(bench.model, CPU)
    outputs: dict[int, list[int]] = {}
    for work, _ in prompts:
        kv_LSW = bench.ranks.read(work.slots, work.input_tokens)
        batch.admit(work.request_id, kv_LSW, work.input_tokens, bench.final[work.request_id], 12)
        for token in batch.step():
            outputs.setdefault(token.job_id, []).append(token.token)
    while len(batch):
        for token in batch.step():
            outputs[token.job_id].append(token.token)
    bench.reset()
    for work, source in prompts:
        wanted = greedy(hf(), source.tokens_S[: work.input_tokens], 12)
        assert first_difference(outputs[work.request_id], wanted.tokens, wanted.logits_TV) is None
