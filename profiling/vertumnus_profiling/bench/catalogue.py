"""The benchmarks by name, and how a selection of them is run."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing
from vertumnus_profiling.bench.books import block_cache, index, ledger
from vertumnus_profiling.bench.matching import match
from vertumnus_profiling.bench.measure import Benchmark, NotHere, Result, Settings, Skipped
from vertumnus_profiling.bench.placement import placement
from vertumnus_profiling.bench.records import fold, log
from vertumnus_profiling.bench.scanning import scan
from vertumnus_profiling.bench.simulator import simulator
from vertumnus_profiling.bench.traces import trace


def cp_speedup(settings: Settings) -> Iterator[Result]:
    """Prefill time of model tiny at degree 1 over that at degree 2, for three prompt lengths."""
    _need_live_engine()
    from vertumnus_profiling.bench import live

    return live.cp_speedup(settings)


def kv_movement(settings: Settings) -> Iterator[Result]:
    """Reading a prompt's blocks out of another process's map, against a plain copy of as many bytes."""
    _need_live_engine()
    from vertumnus_profiling.bench import live

    return live.kv_movement(settings)


def kv_copy(settings: Settings) -> Iterator[Result]:
    """Copying a prompt's blocks from a degree-2 worker to degree 1, against a plain copy of as many bytes."""
    _need_live_engine()
    from vertumnus_profiling.bench import live

    return live.kv_copy(settings)


def switch(settings: Settings) -> Iterator[Result]:
    """From the control record of a split or merge to its last acknowledgement, on four ranks."""
    _need_live_engine()
    from vertumnus_profiling.bench import switching

    return switching.switch(settings)


BENCHMARKS: Mapping[str, Benchmark] = {
    benchmark.__name__: benchmark
    for benchmark in (
        placement,
        match,
        block_cache,
        ledger,
        index,
        scan,
        log,
        fold,
        simulator,
        trace,
        cp_speedup,
        kv_movement,
        kv_copy,
        switch,
    )
}
"""In the order in which they run."""


def select(names: Sequence[str]) -> list[str]:
    """Return *names* without repeats, all benchmarks for none; raises ConfigError with every unknown one."""
    unknown = [name for name in dict.fromkeys(names) if name not in BENCHMARKS]
    if unknown:
        raise ConfigError(*(f"{name}: no such benchmark{did_you_mean(name, BENCHMARKS)}" for name in unknown))
    return [name for name in BENCHMARKS if not names or name in names]


def run(names: Sequence[str], settings: Settings) -> Iterator[Result | Skipped]:
    """Yield the results of the benchmarks *names*, each as soon as it is there."""
    for name in names:
        try:
            yield from BENCHMARKS[name](settings)
        except NotHere as reason:
            yield Skipped(name, str(reason))


def _need_live_engine() -> None:
    missing = [module for module in ("torch", "zmq", "safetensors") if find_spec(module) is None]
    if missing:
        raise NotHere(f"{', '.join(missing)} not installed ({installing('live')})")
