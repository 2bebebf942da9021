"""A user's own keys: a TOML file of names and keys, as ``split = "S"``."""

import os
import re
import tomllib
from pathlib import Path
from unicodedata import lookup

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, _character_to_key

from vertumnus.domain.errors import ConfigError
from vertumnus_console.keys import KEYS

FIXED = frozenset(("ctrl+p", "ctrl+q", "ctrl+c", "escape", "tab", "shift+tab"))
"""Keys that dialogs, the palette and terminals need."""
_MODIFIERS = re.compile(r"^((ctrl|alt|shift|super|hyper|meta)\+)+(?=.)")
_NAMED = frozenset(KEY_NAME_REPLACEMENTS.values()) | {key.value for key in Keys}


def key_names(keys: str) -> list[str]:
    """Return *keys*, written with commas between them, each by its name: "+" as "plus"."""
    return [_character_to_key(key) if len(key) == 1 else key for key in map(str.strip, keys.split(","))]


def keymap_path() -> Path:
    """Return where the file is looked for: VERTUMNUS_KEYS, or keys.toml among the user's settings."""
    named = os.environ.get("VERTUMNUS_KEYS")
    if named:
        return Path(named)
    settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(settings) / "vertumnus" / "keys.toml"


def read_keymap(path: Path) -> dict[str, str]:
    """Return the keys in *path* by name; none without a file. Raises ConfigError for what cannot be."""
    try:
        table = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    names = {key.name for key in KEYS}
    problems = [
        f"{path}: {name}: no such name; allowed: {', '.join(sorted(names))}"
        for name in table
        if name not in names
    ]
    problems += [
        f'{path}: {name}: found {key!r}, must be a key as "S" or "f2"'
        for name, key in table.items()
        if not (isinstance(key, str) and all(map(_is_key, key_names(key))))
    ]
    problems += [
        f"{path}: {name}: found {key!r}, not to be given: {', '.join(sorted(FIXED))}"
        for name, key in table.items()
        if isinstance(key, str) and FIXED & set(key_names(key))
    ]
    problems += _clashes(path, table)
    if problems:
        raise ConfigError(*problems)
    return table


def _is_key(name: str) -> bool:
    """Return whether a terminal can send a key of that *name*."""
    base = _MODIFIERS.sub("", name)
    if len(base) == 1 or base in _NAMED:
        return True
    try:
        return bool(lookup(base.replace("_", " ")))
    except KeyError:
        return False


def _clashes(path: Path, table: dict[str, str]) -> list[str]:
    keys = {key.name: key_names(key.keys) for key in KEYS}
    keys |= {name: key_names(key) for name, key in table.items() if name in keys and isinstance(key, str)}
    users: dict[str, list[str]] = {}
    for name, mine in keys.items():
        for key in mine:
            users.setdefault(key, []).append(name)
    return [
        f"{path}: key {key!r} is given to {' and '.join(names)}"
        for key, names in users.items()
        if len(names) > 1
    ]
