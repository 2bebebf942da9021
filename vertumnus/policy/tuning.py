"""Parameters that an operator may change while a run goes, and the way back."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct, structs

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import largest

SAFE: dict[str, tuple[str, ...]] = {
    "policy": ("beta", "gpu_time_weight", "length_threshold"),
    "correction": ("enabled",),
    "controller": ("upper", "lower", "long_change", "cooldown_windows", "window_s", "load", "min_gain"),
}
"""What can be changed between two decisions without touching what was decided: by part of the config."""

ALLOWED: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}
"""What a parameter may be, by the type of its field; those of `SAFE` have these."""

Value: TypeAlias = int | float | str | None


class Tunable(Protocol):
    """A part of the control plane that reads its config anew for each decision."""

    @property
    def config(self) -> Struct:
        """What it decides by."""

    def retune(self, config: Any) -> None:
        """Decide by *config* from now on; a struct of the same type."""


class Change(NamedTuple):
    """One parameter's way."""

    who: str
    setting: str
    before: Value
    after: Value

    def __str__(self) -> str:
        return f"{self.setting} {_plain(self.before)} -> {_plain(self.after)}"


class Tuning:
    """Changes parameters one at a time, checked as in a config, and takes back what an operator changed.

    Several may act at once: each takes back changes of his own alone, newest first, and no parameter that
    another has changed since.
    """

    def __init__(self) -> None:
        self._parts: dict[str, Tunable] = {}
        self._changes: list[Change] = []
        """Those that stand, oldest first."""

    def add(self, part: str, tunable: Tunable | None) -> None:
        """Offer the parameters of *part*, one of `SAFE`; None offers nothing."""
        if tunable is not None:
            self._parts[part] = tunable

    def settings(self) -> dict[str, Value]:
        """Return what can be changed, by name as in a config, with its value now."""
        return {
            f"{part}.{name}": getattr(tunable.config, name)
            for part, tunable in self._parts.items()
            for name in _safe_names(part, tunable.config)
        }

    def change(self, setting: str, value: Value, who: str) -> Change:
        """Set *setting* to *value* for *who*. Raises ConfigError, changing nothing, if it is forbidden."""
        change = self._set(setting, value, who)
        self._changes.append(change)
        return change

    def undo(self, who: str) -> Change:
        """Take back the newest change by *who*. Raises ConfigError where that cannot be, with the reason."""
        mine = self._newest(lambda change: change.who == who)
        if mine is None:
            raise ConfigError(f"undo: no parameter was changed by {who}")
        setting = self._changes[mine].setting
        newest = self._newest(lambda change: change.setting == setting)
        if newest is not None and newest != mine:
            since = self._changes[newest]
            raise ConfigError(f"undo: {since.who} has changed it since, {since}; tune sets it")
        undone = self._set(setting, self._changes[mine].before, who)
        del self._changes[mine]
        return undone

    def _newest(self, is_wanted: Callable[[Change], bool]) -> int | None:
        """Return the place of the newest change that *is_wanted*."""
        places = range(len(self._changes) - 1, -1, -1)
        return next((place for place in places if is_wanted(self._changes[place])), None)

    def _set(self, setting: str, value: Value, who: str) -> Change:
        now = self.settings()
        if setting not in now:
            allowed = ", ".join(now) or "none under this policy and controller"
            raise ConfigError(f"tune {setting or 'nothing'}: cannot be changed live; allowed: {allowed}")
        part, _, name = setting.partition(".")
        tunable = self._parts[part]
        tunable.retune(_changed(tunable.config, setting, name, value))
        return Change(who, setting, now[setting], getattr(tunable.config, name))


def _changed(config: Struct, setting: str, name: str, value: Value) -> Struct:
    """Return *config* with the field *name* set. Raises ConfigError when type or bounds forbid it."""
    (field,) = (field for field in structs.fields(config) if field.name == name)
    if isinstance(value, int | float) and not abs(value) <= largest(name):
        raise ConfigError(f"tune {setting}: found {value}, must be within +-{largest(name):g}")
    try:
        # a fact carries no bool: 0 and 1, or their words, stand for one
        return structs.replace(
            config, **{name: msgspec.convert(value, field.type, strict=field.type is not bool)}
        )
    except msgspec.ValidationError as error:
        found = "null" if value is None else repr(value)
        raise ConfigError(f"tune {setting}: found {found}, must be {ALLOWED[field.type]}") from error
    except ValueError as error:
        raise ConfigError(*(f"tune {setting}: {line}" for line in str(error).splitlines())) from error


def _safe_names(part: str, config: Struct) -> Iterator[str]:
    return (name for name in SAFE[part] if name in config.__struct_fields__)


def _plain(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
