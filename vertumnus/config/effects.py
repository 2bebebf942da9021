"""Keys that were typed and change nothing: what would read them is switched off.

A key that the chosen variant does not have is an error already; these exist, and another key decides
whether anything reads them. Only what was typed counts: files give every key of their group.
"""

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from vertumnus.config.run_config import RunConfig
from vertumnus.config.wording import show
from vertumnus.policy.admission import AdmissionConfig
from vertumnus.policy.correction import CorrectionConfig


class _Switched(NamedTuple):
    """Keys of a group of the config, and the switches beside them of which one at least must be on."""

    group: str
    keys: tuple[str, ...]
    switches: tuple[str, ...]
    effect: str = "has no effect"


_OFF = (False, "none")
_REPLICATION = ("rank_by", "replication_bytes_per_s", "background_copies", "blocks_per_copy")
_NO_COPY = "moves no copy"  # demand is still counted by it
_SWITCHED = (
    _Switched("cache.manager", ("theta_inter_s",), ("inter",), _NO_COPY),
    _Switched("cache.manager", ("theta_intra",), ("intra",), _NO_COPY),
    _Switched("cache.manager", ("theta_reclaim", "grace_scans"), ("reclaim",), _NO_COPY),
    _Switched("cache.manager", _REPLICATION, ("inter", "intra"), _NO_COPY),
    _Switched("cache.manager", ("operations_per_scan",), ("inter", "intra", "reclaim"), _NO_COPY),
    _Switched("cache.manager", ("preferred_degree",), ("inter", "intra"), _NO_COPY),
    _Switched("admission", AdmissionConfig.__struct_fields__[1:], ("enabled",)),
    _Switched("correction", CorrectionConfig.__struct_fields__[1:], ("enabled",)),
    _Switched("policy", ("ageing",), ("shortest_first",)),
    _Switched("arrival", ("tick_s",), ("jitter",)),
)


def without_effect(jobs: Sequence[tuple[RunConfig, Collection[str]]]) -> list[str]:
    """Return a line for each typed key that nothing reads in any of *jobs*.

    Each is a config and the keys typed for it; where a sweep switches the reader on and off, some job reads.
    """
    told = [dict(_unread(config, typed)) for config, typed in jobs]
    return [line for key, line in told[0].items() if all(key in lines for lines in told)]


def _unread(config: RunConfig, typed: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each key of *typed* that nothing reads in *config*, with the line that says so."""
    for group, keys, switches, effect in _SWITCHED:
        part = attrgetter(group)(config)
        settings = {f"{group}.{switch}": getattr(part, switch, None) for switch in switches}
        if any(setting not in _OFF for setting in settings.values()):
            continue
        state = " and ".join(f"{switch}={_plain(setting)}" for switch, setting in settings.items())
        for key in keys:
            if f"{group}.{key}" in typed:
                line = f"note: {group}.{key}: found {_plain(getattr(part, key))}, {effect} with {state}"
                yield f"{group}.{key}", line


def _plain(value: object) -> str:
    return show(value).strip("'")
