"""What came of a placement, as ``vertumnus explain`` finds it in the log: asked of a process of its own."""

import os
import subprocess
import sys
from concurrent.futures import Future
from threading import Thread
from typing import Any

import msgspec

from vertumnus.domain.units import RequestId, to_seconds
from vertumnus.policy.placement import Decision
from vertumnus.records.run_dir import RunDir
from vertumnus_console.words import duration, labelled

NICENESS = 10
"""The run and this console come first."""


def hindsight(run: RunDir, decision: Decision) -> "Future[tuple[str, ...]]":
    """Return the future lines on what came of a placement; nobody waits for them."""
    future: Future[tuple[str, ...]] = Future()

    def work() -> None:
        try:
            future.set_result(lines(asked(run, decision.request_id), to_seconds(decision.at)))
        except Exception as error:  # the placement is explained without it
            future.set_exception(error)

    Thread(target=work, name="hindsight", daemon=True).start()
    return future


def asked(run: RunDir, request_id: RequestId) -> dict[str, Any]:
    """Return what ``vertumnus explain --json`` says of *request_id*; raises ValueError with its message."""
    words = ["explain", run.run_id, str(request_id), "--runs-dir", str(run.path.parent), "--json"]
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "vertumnus", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    stdout, stderr = child.communicate()
    if child.returncode:
        raise ValueError(stderr.strip() or f"explain ended with {child.returncode}")
    told: dict[str, Any] = msgspec.json.decode(stdout)
    return told


def lines(told: dict[str, Any], at_s: float) -> tuple[str, ...]:
    """Return the outcome of the placement at *at_s* and, where it is known, what another would have saved."""
    placement = next((each for each in told["placements"] if each["at_s"] == at_s), None)
    if placement is None:
        return ("outcome      the log does not have it yet",)
    at, started, ended = placement["at_s"], placement["started_s"], placement["ended"]
    parts = [] if started is None else [f"started after {duration(started - at)}"]
    if placement["prefilled_s"] is not None:
        parts.append(f"prefill {duration(placement['prefilled_s'] - started)}")
    if placement["first_token_s"] is not None:
        parts.append(f"TTFT {duration(placement['first_token_s'] - told['arrival_s'])}")
    parts.append(ended or "still open")
    return (*labelled("outcome", ", ".join(parts)), *_regret(placement))


def _regret(placement: dict[str, Any]) -> list[str]:
    regret = placement["regret_s"]
    if regret is None:
        return []
    if regret == 0:
        return labelled("regret", "none: no worker would have been sooner")
    best = min(placement["candidates"], key=lambda each: each["hindsight_s"])
    return labelled("regret", f"{duration(regret)}: {best['worker']} would have been that much sooner")
