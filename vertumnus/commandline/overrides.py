"""The words after ``vertumnus``: checked, made explicit for Hydra, and multiplied out for a sweep.

A value's key goes to Hydra as a forced addition, so that one check (vertumnus.config) speaks about
every unknown key, all of them at once; a config group's option is checked here, against its files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from vertumnus.commandline.conf_folders import GROUPS
from vertumnus.commandline.hydra_configs import all_groups, as_override, group_options, plain
from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError

ALTERNATIVES = ("arrival.rate", "arrival.time_scale", "arrival.load")
"""Keys that exclude one another: giving one takes the place of another that a file gives."""

VARIANTS = {
    "backend.kind": "backend",
    "policy.name": "policy",
    "controller.name": "controller",
    "initial.name": "initial",
}
"""Keys that name the variant of a group: they change with the whole group, never alone."""

Options = Mapping[str, Sequence[str]]
"""The options of each config group that occurs in the words."""


def job_words(words: Sequence[str], loader: ConfigLoader, multirun: bool) -> list[tuple[str, ...]]:
    """Return the overrides of each job, as typed: of the only one, or with *multirun* of a sweep's.

    Raises ConfigError with every word that cannot be read or names no option of its group.
    """
    parsed = _parsed(words, loader)
    if not multirun:
        _refuse_sweeps(parsed)
    jobs = list(product(*(_expanded(override) for override in parsed)))
    require_options({word for job in jobs for word in job}, loader)
    return jobs


def require_options(words: Iterable[str], loader: ConfigLoader) -> None:
    """Raise ConfigError with every one of *words*, each of one value, that names no option of its group."""
    parsed = {word: as_override(word) for word in sorted(words)}
    named = {override.key_or_group for override in parsed.values()}
    # options that lie on a further search path are Hydra's to find
    options = {} if "hydra.searchpath" in named else group_options(loader, named)
    problems = [problem for override in parsed.values() for problem in _option_problems(override, options)]
    if problems:
        raise ConfigError(*dict.fromkeys(problems))


def for_hydra(words: Sequence[str], loader: ConfigLoader) -> tuple[str, ...]:
    """Return a job's *words* as Hydra needs them to do what they mean."""
    groups = all_groups(loader)
    return (*_replaced_alternatives(words), *(_explicit(word, groups) for word in words))


def _parsed(words: Sequence[str], loader: ConfigLoader) -> list[Override]:
    parser = OverridesParser.create(config_loader=loader)
    parsed, problems = [], []
    for word in words:
        try:
            parsed.append(parser.parse_overrides([word])[0])
        except HydraException as error:
            problems.append(_unreadable(word, error))
    nameless = [word for word in words if word.lstrip("+~").startswith("=")]
    problems += [f"{word}: names no key; write key=value" for word in nameless]
    problems += [_ignored(each) for each in parsed if _is_ignored(each)]
    if problems:
        raise ConfigError(*problems)
    return parsed


def _unreadable(word: str, error: HydraException) -> str:
    key, equals, value = word.partition("=")
    if not equals:
        return f"{word}: not an override; write key=value, or see vertumnus --help"
    if "=" in value:
        return f"{word}: the value contains '='; quote it twice: \"{key}='{value}'\""
    return (
        f"{word}: cannot be read ({plain(error)}); quote a value with special characters: \"{key}='{value}'\""
    )


def _is_ignored(override: Override) -> bool:
    key = override.key_or_group
    return key.startswith(("hydra.", "hydra/")) and key != "hydra.searchpath"


def _ignored(override: Override) -> str:
    return f"{override.key_or_group}: has no effect, Hydra only composes here; allowed: hydra.searchpath"


def _refuse_sweeps(parsed: Sequence[Override]) -> None:
    problems = [
        f"{each.input_line}: several values; add -m to sweep over them, or write [a,b] for a list"
        for each in parsed
        if each.is_sweep_override()
    ]
    if problems:
        raise ConfigError(*problems)


def _expanded(override: Override) -> list[str]:
    """Return the single-valued words that *override* stands for."""
    key = override.get_key_element()
    if override.is_interval_sweep():
        raise ConfigError(
            f"{override.input_line}: an interval has no list of values; use choice() or range()"
        )
    if override.is_sweep_override():
        return [f"{key}={value}" for value in override.sweep_string_iterator()]
    return [str(override.input_line)]


MADE_BY = {"profile": "; vertumnus profile model=MODEL measures one here"}
"""How there comes to be another option of a group."""


def _option_problems(override: Override, options: Options) -> Iterator[str]:
    group = override.key_or_group
    if group in VARIANTS:
        whole = VARIANTS[group]
        yield f"{group}: names which {whole} the other keys belong to; choose a {whole} by {whole}=NAME"
    if group not in options or override.is_delete():
        return
    value = override.value()
    for option in value if isinstance(value, list) else [value]:
        if option not in options[group]:
            name = "null" if option is None else str(option)
            meant = did_you_mean(name, options[group]) + MADE_BY.get(group, "")
            yield f"{group}={name}: no such {group}{meant}"


def _explicit(word: str, groups: Sequence[str]) -> str:
    """Return *word* as Hydra needs it: experiments are added, values forced, other groups as they are."""
    override = as_override(word)
    if override.is_delete() or override.key_or_group.startswith("hydra."):
        return word
    bare = word.lstrip("+")
    if override.key_or_group == "experiment":
        return f"+{bare}"
    if override.key_or_group in GROUPS:
        return bare
    if override.key_or_group in groups or "/" in override.key_or_group or override.package:
        return word
    return f"++{bare}"


def _replaced_alternatives(words: Sequence[str]) -> tuple[str, ...]:
    """Return words that clear what the user's choice among ALTERNATIVES replaces."""
    values = {key.lstrip("+~"): value for key, _, value in (word.partition("=") for word in words)}
    chosen = any(values.get(key, "null") != "null" for key in ALTERNATIVES)
    return tuple(f"++{key}=null" for key in ALTERNATIVES if chosen and key not in values)
