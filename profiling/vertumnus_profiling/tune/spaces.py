"""What may be searched: the keys of one config group, each with a range.

A space is declared for its group; the keys that the composed variant does not have are left out of it, so
that ``policy`` is beta and lambda with policy=paper and the threshold with policy=static. Whether a key is
whole follows from the config, and so does what it may be: a point that the config refuses is never tried.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from vertumnus.config import RunConfig, did_you_mean
from vertumnus.domain.errors import ConfigError


class Range(NamedTuple):
    """Where to look for one key."""

    key: str
    """Dotted: group, then field."""
    low: float
    high: float
    log: bool = False
    """Spread evenly in the logarithm."""
    scaled: bool = False
    """Bounds are tokens of the unscaled trace, the key's are tokens as served."""
    switch: str | None = None
    """Without this key, of the same group, the one here has no effect."""


SPACES: Mapping[str, tuple[Range, ...]] = {
    "controller": (
        Range("controller.window_s", 10.0, 40.0, log=True),
        Range("controller.upper", 0.6, 1.4),
        Range("controller.lower", 0.2, 0.8),
        Range("controller.long_change", 0.02, 0.2, log=True),
        Range("controller.persistence", 1, 4),
        Range("controller.cooldown_windows", 0, 4),
        Range("controller.min_gain", 0.0, 0.3),
        Range("controller.load", 1.0, 1.6),
        Range("controller.replay_requests", 100, 600, log=True),
    ),
    "policy": (
        Range("policy.beta", 1.0, 8.0, log=True),
        Range("policy.gpu_time_weight", 0.0, 1.0),
        Range("policy.ageing", 0.02, 0.5, log=True, switch="policy.shortest_first"),
        Range("policy.length_threshold", 1_024, 65_536, log=True, scaled=True),
    ),
    "cache": (
        Range("cache.scan_interval_s", 5.0, 60.0, log=True),
        Range("cache.decay", 0.3, 0.9),
        Range("cache.manager.theta_inter_s", 0.03, 3.0, log=True, switch="cache.manager.inter"),
        Range("cache.manager.theta_intra", 3.0, 50.0, log=True, switch="cache.manager.intra"),
        Range("cache.manager.theta_reclaim", 0.03, 2.0, log=True, switch="cache.manager.reclaim"),
        Range("cache.manager.operations_per_scan", 4, 512, log=True, switch="cache.manager.inter"),
    ),
}


class Parameter(NamedTuple):
    """One key of a search."""

    range: Range
    whole: bool
    untuned: float
    """What the config has."""

    def at(self, unit: float) -> float:
        """Return the value at *unit*, in [0, 1), of the range: whole, or of three digits."""
        low, high = self.range.low, self.range.high
        if self.whole and not self.range.log:
            return int(low + unit * (high - low + 1))  # every whole number has an equal share
        value = low * (high / low) ** unit if self.range.log else low + unit * (high - low)
        return round(value) if self.whole else float(f"{value:.3g}")

    def __str__(self) -> str:
        scale = " (log)" if self.range.log else ""
        return f"{self.range.key} {self.range.low:g}..{self.range.high:g}{scale}"


def parameters_of(
    space: str, varied: Sequence[Range], config: RunConfig, kept: Sequence[str] = ()
) -> tuple[Parameter, ...]:
    """Return the keys to search: those of *space* that *config* has, with *varied* in their place or beside.

    The keys in *kept* stay as they are. Raises ConfigError for an unknown space, a key that is not of its
    group or no number, a key to keep that would not be searched, an empty space.
    """
    if space not in SPACES:
        raise ConfigError(f"--space {space}: no such space{did_you_mean(space, SPACES)}")
    part: Struct = getattr(config, space)
    numbers = dict(_numbers(part))
    if problems := list(_vary_problems(space, varied, numbers, part)):
        raise ConfigError(*problems)
    wanted = {each.key: _at_scale(each, config) for each in SPACES[space] if _is_on(each, part)}
    wanted |= {each.key: each for each in varied}
    if unknown := [key for key in kept if key not in wanted]:
        raise ConfigError(*(f"--keep {key}: not searched{did_you_mean(key, wanted)}" for key in unknown))
    found = [
        Parameter(each, isinstance(value, int), value)
        for each in wanted.values()
        if each.key not in kept and (value := numbers.get(_field(each.key))) is not None
    ]
    if not found:
        keys = ", ".join(_field(each.key) for each in SPACES[space])
        raise ConfigError(
            f"--space {space}: {space}={_name(part)} has none of its keys ({keys}); "
            f"choose another {space}, or name keys of it with --vary"
        )
    return tuple(found)


def with_values(tree: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain tree of a config with *values* at their dotted keys."""
    changed = dict(tree)
    for key, value in values.items():
        first, _, rest = key.partition(".")
        changed[first] = with_values(changed[first], {rest: value}) if rest else value
    return changed


def _at_scale(declared: Range, config: RunConfig) -> Range:
    if not declared.scaled:
        return declared
    scale = config.workload.token_scale
    return declared._replace(low=max(1.0, declared.low * scale), high=max(2.0, declared.high * scale))


def _vary_problems(
    space: str, varied: Iterable[Range], numbers: Mapping[str, float], part: Struct
) -> Iterator[str]:
    for each in varied:
        group, _, field = each.key.partition(".")
        if group != space:
            yield f"--vary {each.key}: not a key of --space {space}; one search writes one {space} file"
        elif field not in numbers:
            kind = "no number" if field in _leaves(part) else f"no key of {space}={_name(part)}"
            allowed = did_you_mean(each.key, [f"{space}.{name}" for name in numbers])
            yield f"--vary {each.key}: {kind}{allowed}"


def _is_on(each: Range, part: Struct) -> bool:
    return each.switch is None or _leaves(part).get(_field(each.switch)) is True


def _numbers(part: Struct) -> Iterator[tuple[str, float]]:
    for name, value in _leaves(part).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def _leaves(part: Struct) -> dict[str, Any]:
    """Return every value of *part* by its dotted name, those of its own parts included."""
    found: dict[str, Any] = {}
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, Struct):
            found |= {f"{name}.{below}": leaf for below, leaf in _leaves(value).items()}
        else:
            found[name] = value
    return found


def _field(key: str) -> str:
    return key.partition(".")[2]


def _name(part: Struct) -> str:
    return str(part.__struct_config__.tag or "default")
