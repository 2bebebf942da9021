"""How fast the console is on a large pool: ``python -m vertumnus_console.bench``, a part of ``make bench``.

A run of 512 workers at 50 requests/s is simulated; then its last part, with the trie's nodes as told, is
played at the run's own speed on each screen, without a terminal. Told are new pictures a second, how late the
screen handles what comes, and how late a program that does nothing else is beside it, what the screen's
thread works meanwhile, and the process's CPU time by the time watched. Then: what three attached consoles
cost the run (`bench_feeds`).
"""

import asyncio
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, process_time, thread_time
from typing import NamedTuple

from vertumnus.records.run_dir import RunDir
from vertumnus_console.__main__ import console
from vertumnus_console.app import ConsoleApp
from vertumnus_console.bench_feeds import cost
from vertumnus_console.feed import Feed
from vertumnus_console.keys import of_kind
from vertumnus_console.recording import recorded

WORKERS = 512
RATE = 50.0
TICK_S = 0.05
"""Between two looks at how late the screen is [s]."""
IDLE = f"""
from sys import argv
from time import monotonic, sleep
end, late = monotonic() + float(argv[1]), []
while monotonic() < end:
    due = monotonic() + {TICK_S}
    sleep({TICK_S})
    late.append(monotonic() - due)
print(sorted(late)[len(late) * 95 // 100])
"""
"""A program that looks as often, and does nothing else."""


SCREENS = tuple((key.name, key.keys) for key in of_kind("screen"))
"""Screens that are watched, and their keys."""
FEED_REQUESTS, FEED_SPEED = 2_000, 4.0
"""Of the runs with feeds and without."""


class Smoothness(NamedTuple):
    """One screen, watched for a while."""

    screen: str
    pictures_per_s: float
    late_p50_ms: float
    """How much later than due a look came [ms of wall time]: other programs delay it, too."""
    late_p95_ms: float
    idle_late_p95_ms: float
    """The same of a program beside it that only sleeps: what the machine adds."""
    busy_p95_ms: float
    """What the screen's thread worked between two looks [ms of CPU time]."""
    cpu_share: float
    """CPU seconds of the whole process, the replay included, a second watched."""

    def __str__(self) -> str:
        return (
            f"{self.screen:<10}{self.pictures_per_s:5.1f} pictures/s   late P50 {self.late_p50_ms:6.1f} ms, "
            f"P95 {self.late_p95_ms:6.1f} ms (an idle program {self.idle_late_p95_ms:.1f})   "
            f"screen busy P95 {self.busy_p95_ms:5.1f} ms   "
            f"CPU {self.cpu_share:.0%} of a core"
        )


POOL = (
    "+experiment=tool_agent",
    "backend=sim",
    f"cluster.gpus={2 * WORKERS}",
    f"cluster.composition={{2: {WORKERS}, 4: 0}}",
)
"""512 workers of two ranks."""
MANY_NODES = (
    "workload=phases",
    "arrival=trace",
    f"workload.phases=[{{duration_s: 400, rate: {RATE:g}, long_share: 0.6, long_tokens: 24576}}]",
)
"""Six in ten prompts are long, so that the trie is large after some thousand requests."""
STEADY = ("arrival=poisson", f"arrival.rate={RATE}", "arrival.load=null")


async def watch(run: RunDir, seconds: float, screens: Sequence[tuple[str, str]]) -> list[Smoothness]:
    """Play the end of *run* on each of *screens* (name, key) for *seconds* and tell how it went."""
    app = console(run.path.parent, run.run_id, speed=1.0)
    async with app.run_test(size=(160, 50)) as pilot:
        while app.screen.drawn is None or app.screen.drawn.end_ns is None:  # type: ignore[attr-defined]
            await pilot.pause(TICK_S)
        await pilot.press(*["left"] * 8)
        while app.screen.drawn.is_seeking or app.screen.drawn.follows:  # type: ignore[attr-defined]
            await pilot.pause(TICK_S)
        feed: Feed = app.screen.feed  # type: ignore[attr-defined]
        nodes = await asyncio.wrap_future(feed.answer(lambda player: len(player.replay.pool.control.index)))
        print(f"{nodes:,} nodes in the trie", flush=True)
        await pilot.press("space")
        return [await _watch(app, name, key, seconds) for name, key in screens]


async def _watch(app: ConsoleApp, name: str, key: str, seconds: float) -> Smoothness:
    app.simulate_key(key)
    await asyncio.sleep(1.0)  # the first picture of a screen makes its rows
    idle = subprocess.Popen([sys.executable, "-ISc", IDLE, str(seconds)], stdout=subprocess.PIPE, text=True)
    pictures, late, busy = set(), [], []
    cpu, begin = process_time(), monotonic()
    while monotonic() < begin + seconds:
        due, worked = monotonic() + TICK_S, thread_time()
        await asyncio.sleep(TICK_S)
        late.append(1e3 * (monotonic() - due))
        busy.append(1e3 * (thread_time() - worked))
        pictures.add(id(app.screen.drawn))  # type: ignore[attr-defined]
    span, cpu = monotonic() - begin, process_time() - cpu
    return Smoothness(
        name,
        len(pictures) / span,
        _percentile(late, 50),
        _percentile(late, 95),
        1e3 * float(idle.communicate()[0]),
        _percentile(busy, 95),
        cpu / span,
    )


def _percentile(values: list[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100]


def main(argv: Sequence[str]) -> int:
    """Run the bench; return the exit code."""
    parser = ArgumentParser("python -m vertumnus_console.bench", description=__doc__)
    parser.add_argument("--requests", type=int, default=8_000, help="requests of the run; default 8000")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long a screen is watched")
    parser.add_argument(
        "--pairs", type=int, default=7, help="pairs of runs with feeds and without; default 7"
    )
    read = parser.parse_args(list(argv))
    with tempfile.TemporaryDirectory() as scratch:
        run = recorded(Path(scratch), (*POOL, *MANY_NODES, f"workload.requests={read.requests}"))
        print(f"console on {WORKERS} workers at {RATE:g} requests/s")
        for smoothness in asyncio.run(watch(run, read.seconds, SCREENS)):
            print(smoothness, flush=True)
        print(
            cost(
                Path(scratch),
                (*POOL, *STEADY),
                feeds=3,
                requests=FEED_REQUESTS,
                speed=FEED_SPEED,
                pairs=read.pairs,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
