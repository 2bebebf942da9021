"""The phases of a run with ``workload=phases``, in the run's own time.

Run time begins with the first arrival, a mean gap or so after the first phase does.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from vertumnus.domain.errors import ConfigError


class Stretch(NamedTuple):
    """A part of a run, from its start to before its end [s]."""

    name: str
    start_s: float
    end_s: float


def phases(run_id: str, config: Mapping[str, Any]) -> list[Stretch]:
    """Return the phases of run *run_id* that its window of the workload reaches; the last one is open.

    Raises ConfigError when it has none, or when its arrivals were scaled by an unknown factor.
    """
    workload, arrival = config["workload"], config["arrival"]
    durations = [phase["duration_s"] for phase in workload.get("phases", ())]
    if not durations:
        raise ConfigError(f"--phase: run {run_id} has no phases (workload {workload['name']})")
    moved = [key for key in ("rate", "load") if arrival.get(key) is not None]
    if moved or arrival.get("process") != "trace":
        told = ", ".join(f"arrival.{key}={arrival[key]}" for key in moved or ["process"])
        raise ConfigError(f"--phase: run {run_id} has {told}, which moves arrivals out of their phases")
    return _cut(durations, workload.get("start_s", 0.0), arrival.get("time_scale") or 1.0)


def _cut(durations: Sequence[float], start_s: float, scale: float) -> list[Stretch]:
    found, begin = [], -start_s
    for number, duration in enumerate(durations, 1):
        end = begin + duration
        if end > 0.0:
            found.append(Stretch(f"phase {number}", max(0.0, begin) * scale, end * scale))
        begin = end
    last = found[-1]._replace(end_s=inf) if found else None  # whatever still arrives is of the last
    return [*found[:-1], *([last] if last else [])]
