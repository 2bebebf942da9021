"""The tuned values of a cell as ``conf/cell/tuned/NAME.yaml``, an entry for each rate."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole
from vertumnus_profiling.tune.cell_search import PAPER_POINTS, STATIC_POINTS, Tuned

FOLDER = Path("conf", "cell", "tuned")
DIGITS = 4


def entry(tuned: Tuned, made: str) -> dict[str, Any]:
    """Return *tuned* as a plain entry; *made* tells when, by which code and on what."""
    return {
        "composition": dict(sorted(tuned.composition.items())),
        "paper": dict(tuned.paper),
        "static": dict(tuned.static),
        "training_ttft_s": {
            "vertumnus": round(tuned.vertumnus_s, DIGITS),
            "paper_untuned": round(tuned.untuned_s, DIGITS),
            "paper": round(tuned.paper_s, DIGITS),
            "static": round(tuned.static_s, DIGITS),
        },
        "made": made,
    }


def read_entries(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of *path* by level; none when there is no such file. Raises ConfigError."""
    if not path.exists():
        return {}
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: found no entries, must have one for each level; delete it to begin anew")
    return found


def write_entries(path: Path, entries: Mapping[str, Mapping[str, Any]], command: str) -> None:
    """Write *entries*, by level, with the *command* that makes them. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*_head(command), *_body(entries), ""])
    write_whole(path, lambda file: file.write(text.encode()))


def _head(command: str) -> Iterator[str]:
    yield "# Pool, weights of paper and threshold of static at each rate; its seeds judge nothing."
    yield f"# Simulated. Written by `{command}`; tune again rather than edit."
    yield "#   pool    of those with workers of both degrees the best for vertumnus, which is not tuned"
    yield f"#   paper   {PAPER_POINTS} points (Sobol) of beta 1..8 and lambda 0..1, and beta 1, lambda 0.1"
    yield f"#   static  {STATIC_POINTS} points of the threshold, 1,024..65,536 tokens, and 8,192"
    yield "# Each by mean TTFT; the better half of the points on twice as many seeds, and so on."


def _body(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for level, values in entries.items():
        yield f"{level}:"
        for key, value in values.items():
            yield f"  {_line(key, value)}"


def _line(key: str, value: Any) -> str:
    text: str = yaml.safe_dump({key: value}, default_flow_style=True, sort_keys=False, width=1_000)
    return text.strip().removeprefix("{").removesuffix("}")
