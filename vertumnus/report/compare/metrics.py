"""What can be compared: each metric's column, its unit, and which way is better."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from vertumnus.domain.errors import ConfigError


class Metric(NamedTuple):
    """One number of a run, or of a phase of it."""

    name: str
    column: str | None
    """Of the runs table; None for what is worked out of the requests table when it is asked for."""
    unit: Literal["s", "share", "requests/s", "tokens/s", "x"]
    lower_is_better: bool
    by_ratio: bool
    """Whether groups differ by a factor, as latencies do, and not by an amount."""
    by_phase: str | None = None
    """The same over the requests of a phase, as SQL over the requests table; None where that says nothing."""

    def of_run(self, row: Mapping[str, Any]) -> float | None:
        """Return it as a *row* of the runs table has it; None where no column does."""
        return None if self.column is None else row[self.column]

    @property
    def title(self) -> str:
        """The name for people."""
        return self.name.replace("_", " ").replace("ttft", "TTFT").replace("tpot", "TPOT").replace("p9", "P9")


_DONE = "FILTER (status = 'finished')"


def _percentile(name: str, share: float) -> Metric:
    return Metric(
        f"{name}_ttft", f"ttft_{name}_s", "s", True, True, f"quantile_cont(ttft_s, {share}) {_DONE}"
    )


def _attainment(name: str, column: str | None, met: str, of: str = "true") -> Metric:
    judged = f"FILTER ({met} IS NOT NULL AND {of})"
    by_phase = f"sum(if({met}, input_tokens, 0)) {judged} / sum(input_tokens) {judged}"
    return Metric(name, column, "share", False, False, by_phase)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("mean_ttft", "ttft_mean_s", "s", True, True, f"avg(ttft_s) {_DONE}"),
        _percentile("p50", 0.5),
        _percentile("p90", 0.9),
        _percentile("p99", 0.99),
        _attainment("attainment", "slo_attainment", "slo_met"),
        _attainment("long_attainment", None, "slo_met", "length_bucket = '>=32K'"),
        Metric(
            "over_bound", "ttft_over_bound", "x", True, True,
            f"avg(ttft_s) {_DONE} / avg(ttft_bound_s) {_DONE}",
        ),
        Metric("mean_tpot", "tpot_mean_s", "s", True, True, f"avg(tpot_s) {_DONE}"),
        _attainment("tpot_attainment", "tpot_attainment", "tpot_met"),
        Metric("queue", "queue_mean_s", "s", True, False, f"avg(queue_s) {_DONE}"),
        Metric("prefill", "prefill_mean_s", "s", True, True, f"avg(prefill_s) {_DONE}"),
        Metric(
            "hit_rate", "hit_rate", "share", False, False,
            "sum(cached_tokens) FILTER (oracle_cached_tokens IS NOT NULL)"
            " / sum(input_tokens) FILTER (oracle_cached_tokens IS NOT NULL AND cached_tokens IS NOT NULL)",
        ),
        Metric("throughput", "served_requests_per_s", "requests/s", False, True),
        Metric("token_throughput", "served_input_tokens_per_s", "tokens/s", False, True),
    )
}  # fmt: skip
"""By name."""

SHOWN = ("mean_ttft", "over_bound", "p90_ttft", "attainment")
"""Where none is asked for."""


def chosen_metrics(names: Sequence[str], by_phase: bool) -> list[Metric]:
    """Return the metrics of *names*. Raises ConfigError naming the unknown ones, and those without phases."""
    problems = []
    for name in names:
        if name not in METRICS:
            near = get_close_matches(name, METRICS, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            problems.append(f"--metric {name}: no such metric{meant} (allowed: {', '.join(METRICS)})")
        elif by_phase and METRICS[name].by_phase is None:
            problems.append(f"--metric {name}: says nothing of a phase, whose last requests end in the next")
    if problems:
        raise ConfigError(*problems)
    return [METRICS[name] for name in names]
