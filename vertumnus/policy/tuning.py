"""Parameters that an operator may change while a run goes, and the way back."""

from collections.abc import Iterator
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

    setting: str
    before: Value
    after: Value

    def __str__(self) -> str:
        return f"{self.setting} {_plain(self.before)} -> {_plain(self.after)}"


class Tuning:
    """Changes parameters one at a time, checked as in a config, and takes changes back, newest first."""

    def __init__(self) -> None:
        self._parts: dict[str, Tunable] = {}
        self._changes: list[Change] = []

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

    def change(self, setting: str, value: Value) -> Change:
        """Set *setting* to *value*. Raises ConfigError, and changes nothing, when either is not allowed."""
        change = self._set(setting, value)
        self._changes.append(change)
        return change

    def undo(self) -> Change:
        """Take the newest change back. Raises ConfigError when there is none."""
        if not self._changes:
            raise ConfigError("undo: no parameter was changed")
        last = self._changes.pop()
        return self._set(last.setting, last.before)

    def _set(self, setting: str, value: Value) -> Change:
        now = self.settings()
        if setting not in now:
            allowed = ", ".join(now) or "none under this policy and controller"
            raise ConfigError(f"tune {setting or 'nothing'}: cannot be changed live; allowed: {allowed}")
        part, _, name = setting.partition(".")
        tunable = self._parts[part]
        tunable.retune(_changed(tunable.config, setting, name, value))
        return Change(setting, now[setting], getattr(tunable.config, name))


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
