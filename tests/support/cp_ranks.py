"""The ranks of one CP group as processes over gloo, one thread each, driven step by step from a test."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import StepWork
from vertumnus.live.communicator import Communicator, GlooGroup, Solo
from vertumnus.live.config import ModelConfig
from vertumnus.live.kv_store import KvLayout, KvStore, join_blocks
from vertumnus.live.prefill import PrefillExecutor
from vertumnus.live.shared_map import map_store
from vertumnus.live.weights import build_model

BLOCK_TOKENS = 16
BLOCKS_PER_RANK = 512
SEED = 0
_ANSWER_S = 300.0


class Step(NamedTuple):
    """Run these works; *tokens* by request."""

    works: tuple[StepWork, ...]
    tokens: Mapping[int, Tensor]


class ZeroKey(NamedTuple):
    """Set the keys of one cached token to zero in all layers."""

    slot: int
    offset: int


class Rank:
    """What one rank of the group does with a command."""

    def __init__(self, config: ModelConfig, rank: int, directory: Path) -> None:
        device = torch.device("cpu")
        self.store = open_map(config, rank, directory, owner=True)
        model = build_model(config, None, SEED, device)
        self._executor = PrefillExecutor(model, self.store, rank, BLOCKS_PER_RANK)

    def step(self, step: Step, comm: Communicator) -> tuple[int, dict[int, list[float]]]:
        """Run a step; return its nanoseconds and the final states that lie here, as plain lists."""
        result = self._executor.run(step.works, step.tokens, CpGroup(0, comm.size), comm)
        return result.compute_ns, {key: state.tolist() for key, state in result.final_hidden.items()}

    def zero_key(self, command: ZeroKey) -> None:
        """Damage the cache on purpose."""
        block_LBW = self.store.block(command.slot % BLOCKS_PER_RANK)
        for rows_BW in block_LBW:
            self.store.layout.split(rows_BW)[0][command.offset].zero_()


def open_map(config: ModelConfig, rank: int, directory: Path, *, owner: bool) -> KvStore:
    """Return the store of *rank*: its own, whose file is made here, or a peer's view of it."""
    layout, path = KvLayout.of_model(config), directory / f"rank{rank}"
    if owner:
        path.write_bytes(bytes(BLOCKS_PER_RANK * layout.bytes_per_block(BLOCK_TOKENS)))
    with open(path, "r+b" if owner else "rb") as file:
        return map_store(file.fileno(), layout, BLOCKS_PER_RANK, BLOCK_TOKENS, writable=owner)


class CpRanks:
    """C ranks that answer steps; degree 1 lives in this process, without a collective."""

    def __init__(self, config: ModelConfig, degree: int, directory: Path) -> None:
        self.degree = degree
        self._config = config
        self._solo = Rank(config, 0, directory) if degree == 1 else None
        self._processes: list[mp.Process] = []
        self._pipes: list[Connection] = []
        if degree > 1:
            self._spawn(directory)
        self.stores = [open_map(config, rank, directory, owner=False) for rank in range(degree)]

    def _spawn(self, directory: Path) -> None:
        context = mp.get_context("spawn")
        for rank in range(self.degree):
            mine, theirs = context.Pipe()
            arguments = (theirs, self._config, rank, self.degree, directory)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            self._processes.append(process)
            self._pipes.append(mine)
        for rank in range(self.degree):
            self._answer(rank)

    def _answer(self, rank: int) -> Any:
        assert self._pipes[rank].poll(_ANSWER_S), f"rank {rank} does not answer"
        return self._pipes[rank].recv()

    def step(self, works: Sequence[StepWork], tokens: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Run one step on every rank; return the final state of each request.

        Fails when a request's final state is not on exactly one rank.
        """
        return self.timed_step(works, tokens)[1]

    def timed_step(
        self, works: Sequence[StepWork], tokens: Mapping[int, Tensor]
    ) -> tuple[int, dict[int, Tensor]]:
        """Run one step; return the slowest rank's nanoseconds as well."""
        answers = self._call(Step(tuple(works), tokens))
        states = [item for _, found in answers for item in found.items()]
        assert sorted(key for key, _ in states) == sorted(work.request_id for work in works)
        return max(ns for ns, _ in answers), {key: torch.tensor(state) for key, state in states}

    def _call(self, step: Step) -> list[tuple[int, dict[int, list[float]]]]:
        if self._solo is not None:
            return [self._solo.step(step, Solo())]
        for pipe in self._pipes:
            pipe.send((step.works, {key: ids.tolist() for key, ids in step.tokens.items()}))
        return [self._answer(rank) for rank in range(self.degree)]

    def zero_key(self, slot: int, offset: int) -> None:
        """Zero the keys of one cached token at its owner."""
        command = ZeroKey(slot, offset)
        if self._solo is not None:
            self._solo.zero_key(command)
            return
        owner = slot // BLOCKS_PER_RANK
        self._pipes[owner].send(command)
        self._answer(owner)

    def read(self, slots: Sequence[int], tokens: int) -> Tensor:
        """Return a prompt's KV [layers, tokens, width] as peers see it through the maps."""
        blocks = [self.stores[slot // BLOCKS_PER_RANK].block(slot % BLOCKS_PER_RANK) for slot in slots]
        return join_blocks(blocks, tokens)

    def close(self) -> None:
        """Stop the ranks."""
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.send(None)
        for process in self._processes:
            process.join(5.0)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        for pipe in self._pipes:
            pipe.close()


def _serve(pipe: Connection, config: ModelConfig, number: int, degree: int, directory: Path) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    rendezvous = dist.FileStore(str(directory / "rendezvous"), degree)
    gloo = dist.ProcessGroupGloo(rendezvous, number, degree, timedelta(seconds=_ANSWER_S))
    comm, rank = GlooGroup(gloo, timeout_s=_ANSWER_S), Rank(config, number, directory)
    pipe.send("ready")
    while (command := pipe.recv()) is not None:
        if isinstance(command, ZeroKey):
            pipe.send(rank.zero_key(command))
        else:
            works, tokens = command
            step = Step(works, {key: torch.tensor(ids, dtype=torch.int64) for key, ids in tokens.items()})
            pipe.send(rank.step(step, comm))
