"""A user's own keys: a TOML file of names and keys, as ``split = "S"``."""

import os
import tomllib
from pathlib import Path

from vertumnus.domain.errors import ConfigError
from vertumnus_console.keys import KEYS


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
        if not (isinstance(key, str) and key.strip())
    ]
    problems += _clashes(path, table)
    if problems:
        raise ConfigError(*problems)
    return table


def _clashes(path: Path, table: dict[str, str]) -> list[str]:
    keys = {key.name: key.keys.split(",") for key in KEYS}
    keys |= {name: key.split(",") for name, key in table.items() if name in keys and isinstance(key, str)}
    users: dict[str, list[str]] = {}
    for name, mine in keys.items():
        for key in mine:
            users.setdefault(key, []).append(name)
    return [
        f"{path}: key {key!r} is given to {' and '.join(names)}"
        for key, names in users.items()
        if len(names) > 1
    ]
