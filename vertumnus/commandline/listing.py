"""``vertumnus ls``: every config that can be named on the command line, with its purpose."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources.abc import Traversable

from msgspec import Struct

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.conf_folders import GROUPS, packaged_folder, user_folder
from vertumnus.commandline.parser import Parser
from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError


class Entry(Struct, frozen=True):
    """One option of a config group."""

    group: str
    name: str
    purpose: str
    """The comment at the top of the file."""


def list_configs(words: Sequence[str]) -> int:
    """Print the options of the groups named in *words*, or of all; return the exit code."""
    parser = Parser(prog="vertumnus ls", description="What there is to choose from, by group.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default all")
    groups = parser.parse_intermixed_args(list(words)).groups
    unknown = [
        f"ls {word}: no such group{did_you_mean(word, GROUPS)}" for word in groups if word not in GROUPS
    ]
    if unknown:
        raise ConfigError(*unknown)
    listed = [entry for group in groups or GROUPS for entry in entries(group)]
    rows = [(entry.group, entry.name, entry.purpose) for entry in listed]
    print(in_columns([("group", "name", "purpose"), *rows]))
    return 0


def entries(group: str) -> list[Entry]:
    """Return the options of *group* by name; a file of the user's replaces the packaged one."""
    return [Entry(group, name, _purpose(file)) for name, file in option_files(group).items()]


def option_files(group: str) -> dict[str, Traversable]:
    """Return the file of each option of *group*, by name."""
    folders = [packaged_folder(), *filter(None, [user_folder()])]
    found = {file.name: file for folder in folders for file in _yaml_files(folder.joinpath(group))}
    return {name.removesuffix(".yaml"): found[name] for name in sorted(found)}


def _yaml_files(folder: Traversable) -> Iterator[Traversable]:
    if folder.is_dir():
        yield from (file for file in folder.iterdir() if file.name.endswith(".yaml"))


def _purpose(file: Traversable) -> str:
    """Return the first comment of *file*; Hydra's own header (``# @package``) comes before it."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and not line.startswith("# @"):
            return line.removeprefix("#").strip()
    return ""


def unknown_verb(word: str, verbs: Iterable[str]) -> str:
    """Return the message for a first word that is neither a verb nor an override."""
    if word in (entry.name for entry in entries("experiment")):
        return f"{word}: not a verb; an experiment is run with +experiment={word}"
    return f"{word or repr(word)}: neither a verb nor an override (key=value){did_you_mean(word, verbs)}"
