"""Two ranks as processes over gloo that run prefill steps, the first one alone or both together."""

import os
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType

import torch

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Nanoseconds, Rank, Tokens
from vertumnus.live.config import ModelConfig
from vertumnus.live.groups import CpGroups, join_store, serve_store
from vertumnus.live.kv_store import KvLayout, allocate
from vertumnus.live.launch import bind_to_parent
from vertumnus.live.prefill import PrefillExecutor
from vertumnus.live.weights import build_model

BLOCK_TOKENS: Tokens = 32
"""The live engine's default: 512 at 1/16."""
ANSWER_S = 120.0
"""Longest wait for a rank to start, and for a step [s]."""
_PAIR = CpGroup(0, 2)


class CpPair:
    """Ranks 0 and 1 with random weights; a context manager that leaves no process behind."""

    def __init__(self, model: ModelConfig, longest: Tokens) -> None:
        """Prepare for prompts of at most *longest* tokens."""
        self._model = model
        self._longest = longest
        self._ranks: list[tuple[SpawnProcess, Connection]] = []

    def __enter__(self) -> "CpPair":
        self._store = serve_store()
        context = get_context("spawn")
        try:
            for rank in _PAIR.ranks:
                ours, theirs = context.Pipe()
                arguments = (
                    theirs,
                    os.getpid(),
                    self._store.port,
                    self._model,
                    self._longest,
                    rank,
                )
                process = context.Process(target=_serve, args=arguments, daemon=True)
                process.start()
                theirs.close()
                self._ranks.append((process, ours))
            for rank in _PAIR.ranks:
                self._answer(rank)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def step_ns(self, tokens: Tokens, degree: int) -> Nanoseconds:
        """Prefill a prompt of *tokens* at *degree* 1 or 2; return the slowest rank's time [ns]."""
        ranks = range(degree)
        for rank in ranks:
            self._ranks[rank][1].send((tokens, degree))
        return max(self._answer(rank) for rank in ranks)

    def _answer(self, rank: Rank) -> Nanoseconds:
        pipe = self._ranks[rank][1]
        try:
            if pipe.poll(ANSWER_S):
                answer: Nanoseconds = pipe.recv()
                return answer
        except EOFError:
            raise VertumnusError(f"rank {rank} of the benchmark has ended; its error is above") from None
        raise VertumnusError(f"rank {rank} of the benchmark did not answer within {ANSWER_S:.0f} s")

    def _stop(self) -> None:
        for process, pipe in self._ranks:
            pipe.close()  # a rank that finds its pipe closed ends
            process.join(5.0)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self._ranks.clear()


def _serve(
    pipe: Connection, parent_pid: int, port: int, config: ModelConfig, longest: Tokens, rank: Rank
) -> None:
    bind_to_parent(parent_pid)
    torch.set_num_threads(1)
    device = torch.device("cpu")
    groups = CpGroups(join_store(port, ANSWER_S), rank, device, ANSWER_S)
    groups.warm([_PAIR])
    blocks = blocks_for(longest, BLOCK_TOKENS)
    store = allocate(KvLayout.of_model(config), blocks, BLOCK_TOKENS, device)
    executor = PrefillExecutor(build_model(config, None, 0, device), store, rank, blocks)
    pipe.send(0)
    while True:
        try:
            tokens, degree = pipe.recv()
        except EOFError:
            return
        group = CpGroup(0, degree)
        ids = torch.arange(tokens) % config.vocab_size
        work = StepWork(0, 0, tokens, 0, _slots(tokens, degree, blocks))
        pipe.send(executor.run((work,), {0: ids}, group, groups.of(group, generation=0)).compute_ns)


def _slots(tokens: Tokens, degree: int, blocks_per_rank: int) -> tuple[int, ...]:
    """Return a slot for each block of a prompt: block i on rank i mod C."""
    return tuple(
        block % degree * blocks_per_rank + block // degree
        for block in range(blocks_for(tokens, BLOCK_TOKENS))
    )
