"""How fast the console is on a large pool: ``python -m vertumnus_console.bench``, a part of ``make bench``.

A run of 512 workers at 50 requests/s is simulated. From an instant at which its trie has 100,000 nodes on, it
is played at its own speed on one screen after the other, without a terminal, several times over. Told are
pictures a second, how late the screen handles what comes, and how late a program that does nothing else is
beside it, what the screen's thread works meanwhile, and the process's CPU time by the time watched. Then:
what three attached consoles cost the run (`bench_feeds`). What misses its bar is told at the end.
"""

import asyncio
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic, process_time, thread_time
from typing import NamedTuple

from textual.pilot import Pilot

from vertumnus.domain.units import to_ns
from vertumnus.domain.wording import counted
from vertumnus.records.run_dir import RunDir
from vertumnus.run.simulated import rare_collections
from vertumnus_console.__main__ import console
from vertumnus_console.acting import OperatorScreen
from vertumnus_console.app import ConsoleApp
from vertumnus_console.bench_feeds import WARM_S, cost
from vertumnus_console.intervals import Interval, interval
from vertumnus_console.keys import of_kind
from vertumnus_console.recording import recorded

WORKERS = 512
RATE = 50.0
NODES = 100_000
"""That the trie has at least while a screen is watched."""
BEGIN_S = 85.0
"""Instant of the run from which on screens are watched: its trie has more than `NODES` by then [s]."""
SETTLE_S = 1.0
"""After a change of screens, whose first picture makes its rows [s]."""
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
PICTURES_PER_S, LATE_MS, CPU_SHARE, FEED_COST = 4.0, 100.0, 0.5, 1.02
"""The bars: at least, at most, at most, at most."""

SCREENS = tuple((key.name, key.keys) for key in of_kind("screen"))
"""Screens that are watched, and their keys."""
FEEDS, FEED_SPEED, LEG_S = 3, 2.0, 1.25
"""Consoles, speed of the runs that they follow, and how long they stay at one of the two [s]."""

POOL = (
    "+experiment=tool_agent",
    "backend=sim",
    f"cluster.gpus={2 * WORKERS}",
    f"cluster.composition={{2: {WORKERS}, 4: 0}}",
    "cluster.decode.ranks=12",
)
"""512 workers of two ranks, and decode workers that keep up with them."""
STEADY = ("arrival=poisson", f"arrival.rate={RATE}", "arrival.load=null")


class Watched(NamedTuple):
    """One screen, watched for a while."""

    screen: str
    pictures_per_s: float
    late_p95_ms: float
    """How much later than due a look came [ms of wall time]: other programs delay it, too."""
    late_worst_ms: float
    idle_late_p95_ms: float
    """The same, at P95, of a program beside it that only sleeps: what the machine adds."""
    busy_p95_ms: float
    """What the screen's thread worked between two looks [ms of CPU time]."""
    cpu_share: float
    """CPU seconds of the whole process, the replay included, a second watched."""


class Smoothness(NamedTuple):
    """One screen in all rounds."""

    rounds: tuple[Watched, ...]

    @property
    def spreads(self) -> list[Interval]:
        """What was measured, in the order of `Watched`, over the rounds."""
        return [interval(values) for values in list(zip(*self.rounds, strict=True))[1:]]

    def __str__(self) -> str:
        pictures, late, worst, idle, busy, cpu = self.spreads
        return (
            f"{self.rounds[0].screen:<10}{pictures:.1f} pictures/s   CPU {cpu:.0%} of a core   "
            f"late P95 {late:.0f} ms, worst {worst:.0f}; an idle program P95 {idle:.0f}   "
            f"screen busy P95 {busy:.0f} ms"
        )

    def misses(self) -> Iterator[str]:
        """Yield what the median of the rounds is not good enough in."""
        screen = self.rounds[0].screen
        pictures, late, _, _, _, cpu = (spread.median for spread in self.spreads)
        if pictures < PICTURES_PER_S:
            yield f"{screen}: {pictures:.1f} pictures/s, at least {PICTURES_PER_S:g} are meant"
        if late > LATE_MS:
            yield f"{screen}: {late:.0f} ms late at P95, at most {LATE_MS:g} are meant"
        if cpu > CPU_SHARE:
            yield f"{screen}: {cpu:.0%} of a core, at most {CPU_SHARE:.0%} are meant"


def a_run(scratch: Path, watched_s: float) -> RunDir:
    """Return a run of which *watched_s* seconds can be watched; six in ten prompts are long."""
    requests = round(RATE * (BEGIN_S + watched_s))
    phase = f"{{duration_s: {2 * requests / RATE:g}, rate: {RATE:g}, long_share: 0.6, long_tokens: 24576}}"
    words = ("workload=phases", "arrival=trace", f"workload.phases=[{phase}]")
    return recorded(scratch, (*POOL, *words, f"workload.requests={requests}"))


async def watch(run: RunDir, seconds: float, rounds: int) -> list[Smoothness]:
    """Play *run* from `BEGIN_S` on, on each screen for *seconds*, in *rounds*, and tell how it went."""
    app = console(run.path.parent, run.run_id, speed=1.0, at_s=BEGIN_S)
    told: list[list[Watched]] = []
    async with app.run_test(size=(160, 50)) as pilot:
        for _ in range(rounds):
            print(f"{counted(await _begin(pilot, app), 'node')} in the trie", flush=True)
            await pilot.press("space")
            told.append([await _watch(app, name, key, seconds) for name, key in SCREENS])
    return [Smoothness(each) for each in zip(*told, strict=True)]


async def _begin(pilot: "Pilot[None]", app: ConsoleApp) -> int:
    """Go to `BEGIN_S` and return the nodes of the trie there; raises RuntimeError where they are too few."""
    screen, begin = _screen(app), to_ns(BEGIN_S)
    screen.feed.ask(lambda player: player.go_to(begin))
    while screen.drawn is None or screen.drawn.is_seeking or screen.drawn.view.now_ns != begin:
        await pilot.pause(TICK_S)
    asked = screen.feed.answer(lambda player: len(player.replay.pool.control.index))
    nodes = await asyncio.wrap_future(asked)
    if nodes < NODES:
        raise RuntimeError(
            f"{counted(nodes, 'node')} in the trie at {BEGIN_S:g} s, at least {NODES:,} are meant"
        )
    return nodes


def _screen(app: ConsoleApp) -> OperatorScreen:
    assert isinstance(app.screen, OperatorScreen)
    return app.screen


async def _watch(app: ConsoleApp, name: str, key: str, seconds: float) -> Watched:
    app.simulate_key(key)
    await asyncio.sleep(SETTLE_S)
    idle = subprocess.Popen([sys.executable, "-ISc", IDLE, str(seconds)], stdout=subprocess.PIPE, text=True)
    screen = _screen(app)
    pictures, drawn, late, busy = 0, screen.drawn, [], []
    cpu, begin = process_time(), monotonic()
    while monotonic() < begin + seconds:
        due, worked = monotonic() + TICK_S, thread_time()
        await asyncio.sleep(TICK_S)
        late.append(1e3 * (monotonic() - due))
        busy.append(1e3 * (thread_time() - worked))
        pictures += screen.drawn is not drawn
        drawn = screen.drawn
    span, cpu = monotonic() - begin, process_time() - cpu
    idle_late = 1e3 * float((await asyncio.to_thread(idle.communicate))[0])
    return Watched(name, pictures / span, _p95(late), max(late), idle_late, _p95(busy), cpu / span)


def _p95(values: list[float]) -> float:
    return sorted(values)[len(values) * 95 // 100]


def main(argv: Sequence[str]) -> int:
    """Run the bench; return the exit code."""
    parser = ArgumentParser("python -m vertumnus_console.bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long a screen is watched; default 4")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is; default 3")
    parser.add_argument("--legs", type=int, default=128, help="of runs with feeds and without; default 128")
    read = parser.parse_args(list(argv))
    with tempfile.TemporaryDirectory() as scratch:
        missed = list(_bench(Path(scratch), read.seconds, read.rounds, read.legs))
    print(*(missed or ["every bar is met"]), sep="\n")
    return 0


def _bench(scratch: Path, seconds: float, rounds: int, legs: int) -> Iterator[str]:
    """Print what is measured, and yield what misses its bar."""
    if rounds:
        print(
            f"console on {WORKERS} workers at {RATE:g} requests/s, {counted(rounds, 'round')} of "
            f"{seconds:g} s a screen"
        )
        run = a_run(scratch / "run", (seconds + SETTLE_S + 0.5) * len(SCREENS))
        with rare_collections():
            smooth = asyncio.run(watch(run, seconds, rounds))
        print(*smooth, sep="\n", flush=True)
        for screen in smooth:
            yield from screen.misses()
    if legs:
        words = (*POOL, *STEADY, f"workload.requests={_requests(legs)}")
        told = cost(scratch / "feeds", words, feeds=FEEDS, speed=FEED_SPEED, legs=legs, leg_s=LEG_S)
        print(told, flush=True)
        yield from told.misses(FEED_COST)


def _requests(legs: int) -> int:
    """Return the requests of runs that last as long as *legs* legs."""
    return round(1.2 * RATE * FEED_SPEED * (WARM_S + legs * LEG_S))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
