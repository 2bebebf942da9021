"""Context-parallel prefill of one step on one rank (sec. 2.1).

Token-local work is done once for all works of the step, attention for each work. In each layer the
ranks gather one payload: the new keys and values and, for each work, either the cached ones (every
rank then attends to all pieces) or the queries (pass-Q: every rank attends to its own piece for all,
and a second gather returns the parts). All keys carry their position and parts merge in any order, so
any ownership of cached blocks is exact. Every rank enters every collective, without tokens, too.
"""

# T tokens on this rank · R uncached tokens of a work · S cached tokens of one rank · H hidden size
# C ranks · r rows that a rank sends · n blocks · B tokens of a block · W elements of KV per token and layer
# N query heads · K KV heads · D head size

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.units import Nanoseconds, Rank, RequestId
from vertumnus.domain.wording import counted
from vertumnus.live.attention import Kernel, Partial, attend_chunk, choose_kernel, merge
from vertumnus.live.communicator import Communicator
from vertumnus.live.device import wait_for_stream
from vertumnus.live.exchange import Payload, Section, in_token_order, pack_parts, unpack_parts
from vertumnus.live.kv_store import KvStore
from vertumnus.live.models.qwen3 import Projected, Qwen3
from vertumnus.live.prefill_plan import Placement, WorkPlan, plan_work, problems


class PrefillResult(NamedTuple):
    """What a rank has after a step, besides the blocks that it keeps."""

    compute_ns: Nanoseconds
    """Time on this rank, collectives included [ns]."""
    final_hidden: dict[RequestId, Tensor]
    """[H] of position L - 1 after the final norm, on the one rank that computed it."""


class PrefillExecutor:
    """One rank's prefill: its model, its block slots and its place in the pool."""

    def __init__(self, model: Qwen3, store: KvStore, rank: Rank, blocks_per_rank: int) -> None:
        self._model = model
        self._store = store
        self._rank = rank
        self._blocks_per_rank = blocks_per_rank
        self._kernel = choose_kernel(model.device, model.dtype)

    def run(
        self,
        works: tuple[StepWork, ...],
        tokens: Mapping[RequestId, Tensor],
        group: CpGroup,
        comm: Communicator,
    ) -> PrefillResult:
        """Prefill *works* together; *tokens* are the uncached ids [R] of each request.

        The new KV lies in the slots of the works afterwards, at their owners. Raises ProtocolError with
        every problem before the first collective, RuntimeError when a peer is lost in one.
        """
        at = Placement(group, self._rank, self._store.block_tokens, self._blocks_per_rank)
        found = [*_group_problems(at, comm), *self._work_problems(works, tokens, at)]
        if found:
            raise ProtocolError("\n".join(found))
        started = time.perf_counter_ns()
        plans = [plan_work(work, at) for work in works]
        hidden = _Step(self._model, self._store, self._kernel, plans, comm).run(tokens)
        comm.settle()
        # what this thread ordered, and not what a transfer is at, which may be waiting for another rank
        wait_for_stream(self._model.device)
        return PrefillResult(time.perf_counter_ns() - started, hidden)

    def _work_problems(
        self, works: tuple[StepWork, ...], tokens: Mapping[RequestId, Tensor], at: Placement
    ) -> Iterator[str]:
        if not works:
            yield "a step needs at least one request"
        config = self._model.config
        for work in works:
            yield from problems(work, at, config.max_position)
            yield from _token_problems(work, tokens.get(work.request_id), config.vocab_size)


def _group_problems(at: Placement, comm: Communicator) -> Iterator[str]:
    if (comm.size, comm.rank_in_group) != (at.group.degree, at.rank - at.group.first_rank):
        yield (
            f"rank {at.rank} is number {comm.rank_in_group} of {comm.size} in its communicator, "
            f"the step is for worker {at.group}"
        )


def _token_problems(work: StepWork, ids: Tensor | None, vocab_size: int) -> Iterator[str]:
    uncached = work.input_tokens - work.cached_tokens
    if ids is None or ids.shape != (uncached,):
        found = "no" if ids is None else list(ids.shape)
        yield f"request {work.request_id}: {found} token ids for {counted(uncached, 'uncached token')}"
    elif ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        yield f"request {work.request_id}: token ids must be 0 .. {vocab_size - 1}"


class _Step:
    """One step on one rank, layer by layer."""

    def __init__(
        self, model: Qwen3, store: KvStore, kernel: Kernel, plans: Sequence[WorkPlan], comm: Communicator
    ) -> None:
        self._model, self._store, self._kernel = model, store, kernel
        self._plans, self._comm = plans, comm
        counts = [len(plan.zigzag.tokens_of(comm.rank_in_group)) for plan in plans]
        self._rows = [slice(start, stop) for start, stop in pairwise(accumulate(counts, initial=0))]
        config, like = model.config, torch.empty(0, dtype=model.dtype, device=model.device)
        query_width = config.query_heads * config.head_dim
        own = (plan.pieces[comm.rank_in_group] for plan in plans)
        # not in each layer: what goes from host to device waits there for all that the stream has to do, and
        # behind a peer that is gone for ever
        self._own_slots = [store.index_of(piece.slots) for piece in own]
        self._payload = Payload(plans, store.block_tokens, store.layout.width, query_width, like)

    def run(self, tokens: Mapping[RequestId, Tensor]) -> dict[RequestId, Tensor]:
        """Compute all layers, keep this rank's blocks, return the final states that lie here."""
        ids, positions = [], []
        for plan in self._plans:
            mine_T = torch.tensor(plan.zigzag.tokens_of(self._comm.rank_in_group), dtype=torch.int64)
            ids.append(tokens[plan.work.request_id].cpu()[mine_T])
            positions.append(mine_T + plan.work.cached_tokens)
        positions_T = torch.cat(positions).to(self._model.device)
        x_TH = self._model.embed(torch.cat(ids).to(self._model.device))
        for index in range(len(self._model.layers)):
            x_TH = self._layer(index, x_TH, positions_T)
        return self._final_states(x_TH)

    def _layer(self, index: int, x_TH: Tensor, positions_T: Tensor) -> Tensor:
        layer = self._model.layers[index]
        projected = layer.project(x_TH, positions_T)
        self._fill(index, projected)
        sections = self._payload.sections(self._comm.all_gather(self._payload.mine_n))
        returned = self._pass_queries(index, sections)
        attended_TND = torch.empty_like(projected.q_TND)
        for plan, rows, section in zip(self._plans, self._rows, sections, strict=True):
            new_RW = in_token_order(plan.zigzag, section.new_CrW)
            self._keep(index, plan, new_RW)
            if rows.start < rows.stop:
                q_TND = projected.q_TND[rows]
                cached = returned.get(plan.work.request_id) or self._attend_pieces(plan, q_TND, section)
                attended_TND[rows] = reduce(merge, cached, self._attend_new(plan, q_TND, new_RW)).out_TND
        return layer.finish(x_TH, attended_TND)

    def _fill(self, index: int, projected: Projected) -> None:
        works = zip(self._plans, self._rows, self._payload.mine, self._own_slots, strict=True)
        for plan, rows, mine, slots_n in works:
            count = rows.stop - rows.start
            k_TKD, v_TKD = self._store.layout.split(mine.new_CrW[0, :count])
            k_TKD.copy_(projected.k_TKD[rows])
            v_TKD.copy_(projected.v_TKD[rows])
            if plan.sends_queries:
                mine.queries_CrH[0, :count] = projected.q_TND[rows].flatten(1)
            elif len(slots_n):
                blocks_nBW = mine.cached_CrW.view(-1, self._store.block_tokens, self._store.layout.width)
                self._store.read_blocks(slots_n, index, out=blocks_nBW[: len(slots_n)])

    def _keep(self, index: int, plan: WorkPlan, new_RW: Tensor) -> None:
        for write in plan.writes:
            values_TW = new_RW[write.tokens.start : write.tokens.stop]
            self._store.write(write.slot, index, write.offset, values_TW)

    def _attend_new(self, plan: WorkPlan, q_TND: Tensor, new_RW: Tensor) -> Partial:
        k_RKD, v_RKD = self._store.layout.split(new_RW)
        parts, row = [], 0
        for chunk in filter(None, plan.zigzag.chunks_of(self._comm.rank_in_group)):
            queries = q_TND[row : row + len(chunk)]
            parts.append(attend_chunk(self._kernel, queries, k_RKD, v_RKD, chunk.start))
            row += len(chunk)
        return Partial(*(torch.cat(pair) for pair in zip(*parts, strict=True)))

    def _attend_pieces(self, plan: WorkPlan, q_TND: Tensor, section: Section) -> list[Partial]:
        pieces = zip(plan.pieces, section.cached_CrW, strict=True)
        return [self._attend_cached(q_TND, rows[: piece.tokens]) for piece, rows in pieces if piece.tokens]

    def _attend_cached(self, q_TND: Tensor, cached_SW: Tensor) -> Partial:
        k_SKD, v_SKD = self._store.layout.split(cached_SW)
        return self._kernel.full(q_TND, k_SKD, v_SKD)

    def _pass_queries(self, index: int, sections: list[Section]) -> dict[RequestId, list[Partial]]:
        works = zip(self._plans, sections, self._own_slots, strict=True)
        passed = [work for work in works if work[0].sends_queries]
        if not passed:
            return {}
        answers = [
            self._answer(index, plan, in_token_order(plan.zigzag, section.queries_CrH), slots_n)
            for plan, section, slots_n in passed
        ]
        plans = [plan for plan, _, _ in passed]
        heads, me = self._model.config.query_heads, self._comm.rank_in_group
        returned = unpack_parts(self._comm.all_gather(pack_parts(answers)), plans, heads, me)
        return {plan.work.request_id: parts for plan, parts in zip(plans, returned, strict=True)}

    def _answer(self, index: int, plan: WorkPlan, queries_RH: Tensor, slots_n: Tensor) -> Partial:
        """Attend to this rank's piece for all queries of the group; nothing there counts as no share."""
        q_RND = queries_RH.view(len(queries_RH), self._model.config.query_heads, -1)
        piece = plan.pieces[self._comm.rank_in_group]
        if not piece.tokens:
            return Partial(torch.zeros_like(q_RND), q_RND.new_full(q_RND.shape[:2], -math.inf))
        cached_SW = self._store.read_blocks(slots_n, index).flatten(0, 1)[: piece.tokens]
        return self._attend_cached(q_RND, cached_SW)

    def _final_states(self, x_TH: Tensor) -> dict[RequestId, Tensor]:
        states = {}
        for plan, rows in zip(self._plans, self._rows, strict=True):
            last = plan.zigzag.place(plan.zigzag.tokens - 1)
            if last.rank_in_group == self._comm.rank_in_group:
                states[plan.work.request_id] = self._model.final_norm(x_TH[rows.start + last.row])
        return states
