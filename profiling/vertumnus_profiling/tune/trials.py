"""Simulated runs of a search, on as many processes as there are cores; the numbers do not depend on them."""

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import VertumnusError
from vertumnus.run.simulated import rare_collections
from vertumnus.run.stream import Stream, load_stream
from vertumnus.run.trial import served
from vertumnus_profiling.tune.objectives import Requests

Result = TypeVar("Result")


class Asked(NamedTuple):
    """One run: a name that the asker knows it by, and the plain tree of its config."""

    name: tuple[int, int]
    tree: Mapping[str, Any]


class Runners(Generic[Result]):
    """Runs configs side by side."""

    def __init__(self, jobs: int, task: Callable[[Mapping[str, Any]], Result]) -> None:
        """Do *task* with the plain tree of each config on *jobs* processes; with one, in this process."""
        self._jobs = jobs
        self._task = task
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Runners[Result]":
        if self._jobs > 1:
            # spawned: a fork would copy whatever threads and locks this process has
            context = multiprocessing.get_context("spawn")
            self._others = multiprocessing.active_children()
            self._pool = ProcessPoolExecutor(self._jobs, context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        own = [child for child in multiprocessing.active_children() if child not in self._others]
        self._pool.shutdown(wait=error is None, cancel_futures=True)
        if error is not None:  # nobody waits for what is still running
            for process in own:
                process.terminate()
                process.join()

    def run(self, asked: Iterable[Asked]) -> Iterator[tuple[tuple[int, int], Result]]:
        """Yield the result of each run, in whatever order they end.

        Raises VertumnusError when a process died.
        """
        if self._pool is None:
            yield from ((each.name, self._task(each.tree)) for each in asked)
            return
        with _interrupts_stay_here():
            futures: dict[Future[Result], tuple[int, int]] = {
                self._pool.submit(self._task, each.tree): each.name for each in asked
            }
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise VertumnusError(
                "a process that ran trials was killed (by the memory limit?); "
                "start again to continue, with fewer --jobs"
            ) from error


def measured(tree: Mapping[str, Any]) -> Requests:
    """Simulate the config of *tree* and return its measured requests."""
    config = to_run_config(tree)
    with rare_collections():
        records = served(config, stream_of(config))
    return Requests.of(records, config.records.warmup_requests(len(records)))


def stream_of(config: RunConfig) -> Stream:
    """Return the workload of *config*, read once in a process for all configs that share it."""
    return _stream(_Workload(config))


class _Workload:
    """A config by what its workload depends on, as the key of a cache."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self._key = config.seed, msgspec.json.encode(config.workload)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Workload) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=4)
def _stream(workload: _Workload) -> Stream:
    return load_stream(workload.config)


@contextmanager
def _interrupts_stay_here() -> Iterator[None]:
    """Let processes that are started meanwhile never see a Ctrl-C, not even as they import; this one waits.

    A process of a pool starts with the first work that is submitted, and keeps the mask that it starts with.
    """
    resource_tracker.ensure_running()  # its own start would let through again what is held here
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
