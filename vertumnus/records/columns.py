"""The columns of a run's tables, by table, with the SQL type and the source of each value.

Durations and instants are DOUBLE seconds (``_s``), the event clock BIGINT nanoseconds (``t_ns``),
lengths tokens, shares 0..1; undefined is NULL. A column never changes its unit or meaning: a new
meaning is a new column and a higher `TABLES_VERSION`.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from vertumnus.domain.units import SECOND
from vertumnus.records.run_row import canonical_json, config_hash

TABLES_VERSION = 2
"""In each row's ``schema_version``."""

SqlType: TypeAlias = Literal["BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP", "VARCHAR[]"]


class Column(NamedTuple):
    """One column: its name, its type, and its value for a row object."""

    name: str
    type: SqlType
    value: Callable[[Any], object]

    def within(self, part: str) -> "Column":
        """Return this column for rows that hold its row object as *part*."""
        get, value = attrgetter(part), self.value
        return self._replace(value=lambda row: value(get(row)))

    def within_optional(self, part: str) -> "Column":
        """Return this column for rows that hold its row object, or None, as *part*."""
        get, value = attrgetter(part), self.value
        return self._replace(value=lambda row: None if get(row) is None else value(get(row)))


def _field(name: str, kind: SqlType, source: str | None = None) -> Column:
    return Column(name, kind, attrgetter(source or name))


def _seconds(name: str) -> Column:
    """Return column ``<name>_s`` of the row's ``<name>_ns``."""
    get = attrgetter(f"{name}_ns")

    def value(row: Any) -> float | None:
        nanoseconds = get(row)
        return None if nanoseconds is None else nanoseconds / SECOND

    return Column(f"{name}_s", "DOUBLE", value)


def _text(name: str, get: Callable[[Any], Iterable[object]]) -> Column:
    """Return a column of the things that *get* returns: "0x1 + 1x1"."""
    return Column(name, "VARCHAR", lambda row: " + ".join(map(str, get(row))))


def _planned(column: str, kind: SqlType, field: str) -> Column:
    """Return a column of what the run was given; NULL where that was not noted."""

    def value(row: Any) -> object:
        planned = row.start.planned
        return None if planned is None else getattr(planned, field)

    return Column(column, kind, value)


_VERSION = Column("schema_version", "INTEGER", lambda row: TABLES_VERSION)

_WORKER = (
    Column("worker_id", "VARCHAR", lambda row: None if row.worker is None else str(row.worker)),
    Column("cp_degree", "INTEGER", lambda row: None if row.worker is None else row.worker.degree),
)

_REQUESTS = (
    _VERSION,
    _field("request_id", "BIGINT"),
    _seconds("arrival"),
    _field("t_ns", "BIGINT"),
    _field("status", "VARCHAR"),
    _field("reason", "VARCHAR"),
    _field("attempts", "INTEGER"),
    _field("placements", "INTEGER"),
    *_WORKER,
    _field("epoch", "INTEGER"),
    _field("step_id", "BIGINT"),
    _field("input_tokens", "BIGINT"),
    _field("cached_tokens", "BIGINT"),
    _field("uncached_tokens", "BIGINT"),
    _field("output_tokens", "BIGINT"),
    _field("oracle_cached_tokens", "BIGINT"),
    _field("expected_cached_tokens", "BIGINT"),
    _seconds("predicted_service"),
    _seconds("queue"),
    _seconds("cache_wait"),
    _seconds("prefill"),
    _seconds("compute"),
    _seconds("ext"),
    _seconds("ttft"),
    _seconds("tpot"),
    _seconds("e2e"),
    _seconds("gpu"),
    _seconds("send_lag"),
    _seconds("slo_ttft"),
    _field("slo_met", "BOOLEAN"),
    _seconds("slo_tpot"),
    _field("tpot_met", "BOOLEAN"),
)

_DECISIONS = (
    _VERSION,
    _field("request_id", "BIGINT"),
    _field("attempt", "INTEGER"),
    _field("t_ns", "BIGINT"),
    *_WORKER,
    _field("cached_tokens", "BIGINT"),
    _seconds("queue"),
    _seconds("service"),
    _seconds("gpu_time"),
    _seconds("externality"),
    _field("pending_blocks", "BIGINT"),
    _field("pulled_blocks", "BIGINT"),
    Column("pull_source", "VARCHAR", lambda row: None if row.pull_source is None else str(row.pull_source)),
    _field("after_request", "BIGINT"),
    _seconds("cost"),
    _field("cost", "BIGINT"),
    _field("cost_unit", "VARCHAR"),
    _field("chosen", "BOOLEAN"),
    _field("excluded_reason", "VARCHAR"),
)

_WORKERS = (
    _VERSION,
    _field("t_ns", "BIGINT"),
    *_WORKER,
    _field("epoch", "INTEGER"),
    _field("service", "VARCHAR"),
    _seconds("since"),
    _field("queued_requests", "INTEGER"),
    _seconds("queued"),
    _field("running_requests", "INTEGER"),
    _field("queue_peak", "INTEGER"),
    _seconds("busy"),
    _field("requests", "BIGINT"),
    _field("input_tokens", "BIGINT"),
    _field("cached_tokens", "BIGINT"),
)

_WINDOWS = (
    _VERSION,
    _field("index", "INTEGER", "note.index"),
    _field("t_ns", "BIGINT"),
    _seconds("start").within("note"),
    _seconds("end").within("note"),
    _field("requests", "BIGINT", "note.requests"),
    _field("requests_per_s", "DOUBLE"),
    _seconds("demand").within("note"),
    _seconds("capacity").within("note"),
    _field("utilisation", "DOUBLE"),
    _field("long_fraction", "DOUBLE", "note.long_fraction"),
    _field("signal", "VARCHAR", "note.signal"),
    _field("persistence", "INTEGER", "note.persistence"),
    Column("action", "VARCHAR", lambda row: row.note.action or None),
    _field("reason", "VARCHAR", "note.reason"),
    _field("forecast_id", "BIGINT", "note.forecast_id"),
    Column("composition", "VARCHAR", lambda row: str(row.composition)),
)

_RECONFIGS = (
    _VERSION,
    _field("epoch", "INTEGER"),
    _field("t_ns", "BIGINT"),
    _field("kind", "VARCHAR"),
    _text("sources", lambda row: row.sources),
    _text("targets", lambda row: row.targets),
    _field("by", "VARCHAR"),
    _field("outcome", "VARCHAR"),
    _field("reason", "VARCHAR"),
    _seconds("drain"),
    _seconds("park"),
    _seconds("switch"),
    _seconds("total"),
    _field("redirected_requests", "BIGINT"),
    _field("evicted_blocks", "BIGINT"),
)

_CACHE_OPS = (
    _VERSION,
    _field("transfer_id", "BIGINT"),
    _field("t_ns", "BIGINT"),
    _field("purpose", "VARCHAR"),
    _field("origin", "VARCHAR"),
    *_WORKER,
    _field("for_request", "BIGINT"),
    _field("outcome", "VARCHAR"),
    _field("reason", "VARCHAR"),
    _field("blocks", "BIGINT"),
    _field("payload_bytes", "BIGINT"),
    _seconds("wire"),
    _seconds("wait"),
)

_OUTCOME = (
    Column("move", "VARCHAR", lambda outcome: None if outcome.move is None else str(outcome.move)),
    _field("requests", "BIGINT"),
    _field("served", "BIGINT"),
    _seconds("ttft_mean"),
    _seconds("ttft_p90"),
    _field("slo_attainment", "DOUBLE"),
    _seconds("drain"),
    _seconds("switch"),
    _field("missing_blocks", "BIGINT"),
    _field("copied_blocks", "BIGINT"),
    _field("copied_bytes", "BIGINT"),
)

_FORECASTS = (
    _VERSION,
    _field("forecast_id", "BIGINT", "order.forecast_id"),
    _field("t_ns", "BIGINT"),
    _seconds("span").within("order"),
    _field("repeats", "INTEGER", "order.repeats"),
    _field("load", "DOUBLE", "order.load"),
    _field("hindsight_of", "BIGINT", "order.hindsight_of"),
    _field("status", "VARCHAR"),
    _field("reason", "VARCHAR"),
    _seconds("answer"),
    _field("made", "BOOLEAN"),
    *(column.within_optional("outcome") for column in _OUTCOME),
)

_TRIE_SAMPLES = (
    _VERSION,
    _field("scan", "INTEGER", "note.scan"),
    _field("t_ns", "BIGINT"),
    _field("cp_degree", "INTEGER", "heat.degree"),
    _field("known_blocks", "BIGINT", "note.blocks"),
    _field("copies", "BIGINT", "heat.copies"),
    _field("access", "DOUBLE", "heat.access"),
    _seconds("missed").within("heat"),
    _field("inter_chosen", "INTEGER", "note.inter"),
    _field("intra_chosen", "INTEGER", "note.intra"),
    _field("reclaim_chosen", "INTEGER", "note.reclaimed_blocks"),
    _field("unfinished", "INTEGER", "note.unfinished"),
)

_HOT_PREFIXES = (
    _VERSION,
    _field("scan", "INTEGER"),
    _field("t_ns", "BIGINT"),
    _field("cp_degree", "INTEGER", "block.degree"),
    _field("block_key", "BIGINT", "block.key"),
    _field("depth", "INTEGER", "block.depth"),
    _field("replicas", "INTEGER", "block.replicas"),
    _field("access", "DOUBLE", "block.access"),
    _seconds("missed").within("block"),
)

_FAULTS = (
    _VERSION,
    _field("t_ns", "BIGINT"),
    _field("kind", "VARCHAR"),
    _field("subject", "VARCHAR"),
    _field("reason", "VARCHAR"),
)

_COUNTS = (
    "requests",
    "warmup_requests",
    "measured_requests",
    "finished",
    "failed",
    "rejected",
    "cancelled",
    "interrupted",
    "input_tokens",
    "cached_tokens",
)

_NUMBERS = (
    "ttft_mean_s",
    "ttft_p50_s",
    "ttft_p90_s",
    "ttft_p99_s",
    "ttft_all_p50_s",
    "ttft_all_p90_s",
    "ttft_all_p99_s",
    "ttft_bound_mean_s",
    "ttft_bound_p90_s",
    "ttft_over_bound",
    "queue_mean_s",
    "cache_wait_mean_s",
    "prefill_mean_s",
    "ext_mean_s",
    "tpot_mean_s",
    "slo_attainment",
    "tpot_attainment",
    "hit_rate",
    "oracle_hit_rate",
    "requests_per_s",
    "input_tokens_per_s",
    "measured_s",
    "served_requests_per_s",
    "served_input_tokens_per_s",
    "served_s",
    "send_lag_p99_s",
)

_RUNS = (
    _VERSION,
    _field("run_id", "VARCHAR", "start.run_id"),
    _field("name", "VARCHAR", "start.name"),
    _field("started_at", "TIMESTAMP"),
    _field("sweep", "VARCHAR", "start.sweep"),
    _field("status", "VARCHAR"),
    _field("verdict", "VARCHAR", "verdict.verdict"),
    Column("reasons", "VARCHAR[]", lambda row: list(row.verdict.reasons)),
    _field("backend", "VARCHAR", "header.backend"),
    _field("execution", "VARCHAR"),
    Column("config", "VARCHAR", lambda row: canonical_json(row.header.config)),
    Column("config_hash", "VARCHAR", lambda row: config_hash(row.header.config)),
    _field("asked_hash", "VARCHAR", "start.asked_hash"),
    Column("overrides", "VARCHAR[]", lambda row: list(row.start.overrides)),
    _field("label", "VARCHAR", "start.label"),
    _field("seed", "BIGINT", "header.seed"),
    Column("workload", "VARCHAR", lambda row: row.setting("workload", "name")),
    Column("policy", "VARCHAR", lambda row: row.setting("policy", "name")),
    Column("controller", "VARCHAR", lambda row: row.setting("controller", "name")),
    _planned("offered_requests_per_s", "DOUBLE", "offered_requests_per_s"),
    _planned("arrivals_hash", "VARCHAR", "arrivals_hash"),
    _field("model", "VARCHAR", "header.profile.model"),
    _field("hardware", "VARCHAR", "header.profile.hardware"),
    _field("profile_provenance", "VARCHAR", "header.profile.provenance"),
    _field("gpus", "INTEGER", "header.lattice.gpus"),
    Column("composition", "VARCHAR", lambda row: str(row.header.composition)),
    _field("block_tokens", "INTEGER", "header.block_tokens"),
    _field("warmup_share", "DOUBLE", "header.records.warmup_share"),
    _field("code_version", "VARCHAR", "header.code_version"),
    _field("code_hash", "VARCHAR", "start.code_hash"),
    _field("git_revision", "VARCHAR", "start.git_revision"),
    Column("versions", "VARCHAR", lambda row: canonical_json(row.start.versions)),
    _field("cpu_model", "VARCHAR", "start.cpu_model"),
    _field("cores", "INTEGER", "start.cores"),
    _field("wall_s", "DOUBLE"),
    _field("sim_s", "DOUBLE"),
    _field("sim_requests_per_s", "DOUBLE"),
    _field("others_cpu_share", "DOUBLE"),
    _planned("planned_requests", "BIGINT", "requests"),
    _field("never_arrived", "BIGINT"),
    _planned("skipped_rows", "BIGINT", "skipped_rows"),
    *(_field(name, "BIGINT", f"metrics.{name}") for name in _COUNTS),
    *(_field(name, "DOUBLE", f"metrics.{name}") for name in _NUMBERS),
)

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "runs": _RUNS,
    "requests": (
        *(column.within("record") for column in _REQUESTS),
        _field("measured", "BOOLEAN"),
        _field("length_bucket", "VARCHAR"),
        _seconds("ttft_bound"),
    ),
    "decisions": _DECISIONS,
    "workers": _WORKERS,
    "windows": _WINDOWS,
    "reconfigs": _RECONFIGS,
    "cache_ops": _CACHE_OPS,
    "forecasts": _FORECASTS,
    "trie_samples": _TRIE_SAMPLES,
    "hot_prefixes": _HOT_PREFIXES,
    "faults": _FAULTS,
}
"""Every table of a run."""
