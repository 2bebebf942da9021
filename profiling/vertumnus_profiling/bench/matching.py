"""How fast the prefix index matches prompts, beside the obvious index of sets."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from vertumnus.domain.errors import InvariantError
from vertumnus.domain.units import BlockKey, Blocks
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.run.simulated import rare_collections
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.load import load_rows
from vertumnus_profiling.bench.measure import Result, Settings, ratios, result, timed_ns
from vertumnus_profiling.bench.pools import FIFTEEN_WORKERS, groups_of

QUICK_REQUESTS = 500


def match(settings: Settings) -> Iterator[Result]:
    """Blocks matched a second on a trace's prompts at 15 workers, and how many times faster than sets."""
    paths = trace_paths(settings.trace, QUICK_REQUESTS if settings.quick else None)
    groups = groups_of(FIFTEEN_WORKERS)
    index, sets = PrefixIndex(groups), SetIndex(len(groups))
    for number, path in enumerate(paths):
        place = number % len(groups)
        group = groups[place]
        index.install(path, 0, [group.first_rank + block % group.degree for block in range(len(path))])
        sets.install(path, place)
    _check_equal(index, sets, paths)
    ours, theirs = [], []
    with rare_collections():
        for _ in range(settings.repeats):
            ours.append(timed_ns(lambda: [index.match(path) for path in paths]))
            theirs.append(timed_ns(lambda: [sets.match(path) for path in paths]))
    blocks = sum(map(len, paths))
    yield result("match/index", "1/s", [blocks * 1e9 / took for took in ours], blocks)
    yield result("match/sets", "1/s", [blocks * 1e9 / took for took in theirs], blocks)
    yield result("match/index_over_sets", "x", ratios(theirs, ours), blocks)


def trace_paths(trace: Path | None, requests: int | None) -> list[tuple[BlockKey, ...]]:
    """Return the block keys of each prompt of *trace*, or of the generated tool-agent trace.

    Raises ConfigError when the file is missing or bad.
    """
    workload = WorkloadConfig(
        name="bench",
        purpose="prompts to match",
        generator="tool_agent",
        path=None if trace is None else str(trace),
        requests=requests,
    )
    loaded = load_rows(workload, ArrivalConfig(), seed=0)
    return [request.block_keys or () for request in to_requests(loaded.rows, loaded.block_tokens)]


class SetIndex:
    """The yardstick: for each block the set of workers that hold it, intersected along the path."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._holders: dict[BlockKey, set[int]] = {}

    def install(self, path: Sequence[BlockKey], place: int) -> None:
        """Note that worker *place* holds the whole *path*."""
        for key in path:
            self._holders.setdefault(key, set()).add(place)

    def match(self, path: Sequence[BlockKey]) -> list[Blocks]:
        """Return the leading blocks that each worker holds."""
        held = [0] * self._workers
        holding = set(range(self._workers))
        for key in path:
            holding = holding & self._holders.get(key, set())
            if not holding:
                break
            for place in holding:
                held[place] += 1
        return held


def _check_equal(index: PrefixIndex, sets: SetIndex, paths: Sequence[Sequence[BlockKey]]) -> None:
    for number, path in enumerate(paths):
        if list(index.match(path).held) != sets.match(path):
            raise InvariantError(f"prompt {number}: prefix index and sets disagree on who holds it")
