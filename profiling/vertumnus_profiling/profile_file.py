"""A profile on disk: one YAML file for people and for ``profile=NAME``."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from vertumnus.domain.profile import ModelProfile
from vertumnus.records.atomic import write_whole

DIGITS = 6
"""Significant digits of a measured number; the measurement has fewer."""

_COMMENTS: Mapping[str, str] = {
    "schema_version": "what was measured, where and when",
    "degrees": "E_C(R, P) of Eq. 2 in seconds; profile.form=published, log2 or per_degree picks the form",
    "prefill": "shared by all degrees, with g*log2(C)",
    "published": "as published: g = 0",
    "per_degree": "each degree's own fit",
    "clocks": "what was fitted: wall time, or CPU time of a rank (beyond the cores, or by choice)",
    "errors": "held out in five folds, as shares of the measured time",
    "cpu": "CPU time of one rank in a prefill: what ranks that share cores take from one another",
    "capacity": "kappa [s of work/s]: what one worker serves within target, by the workers of its pool",
    "handoff_base_s": "from the end of the prefill to the first token",
}
"""Keys in the order of the file that begin a paragraph; the others follow in the order given below."""

_ORDER = (
    "schema_version",
    "model",
    "dtype",
    "block_tokens",
    "kv_bytes_per_token",
    "hardware",
    "cores",
    "measured_at",
    "provenance",
    "degrees",
    "parallelism",
    "form",
    "prefill",
    "published",
    "per_degree",
    "clocks",
    "errors",
    "cpu",
    "capacity",
    "capacity_provenance",
    "handoff_base_s",
    "handoff_per_token_s",
    "decode_step_s",
)


def profile_name(model: str, hardware: str) -> str:
    """Return the name of the profile of *model* on *hardware*, as it is typed on the command line."""
    words = re.sub(r"\((r|tm)\)|\bcpu\b|\bprocessor\b|@.*?(?=,)|, one .*", "", hardware.lower())
    return f"{_slug(model)}-{_slug(words)}"


def to_yaml(profile: ModelProfile) -> str:
    """Return *profile* as the text of its file; numbers are rounded to `DIGITS` digits."""
    plain = _rounded(msgspec.to_builtins(profile, str_keys=False))
    head = f"# {_purpose(profile)}\n# Written by `vertumnus profile`; measure again rather than edit.\n"
    return head + "".join(_paragraphs(plain))


def write_profile(path: Path, profile: ModelProfile) -> None:
    """Write *profile* to *path*, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(to_yaml(profile).encode()))


def _purpose(profile: ModelProfile) -> str:
    """Return the line that ``vertumnus ls`` shows."""
    where = profile.hardware.partition(", one ")[0]
    degrees = "/".join(str(degree) for degree in profile.degrees)
    return f"{profile.model} at CP {degrees}, measured {profile.measured_at} on {where[:70]}."


def _paragraphs(plain: Mapping[str, Any]) -> Iterator[str]:
    for key in _ORDER:
        if key in _COMMENTS and plain[key] is not None:
            yield f"\n# {_COMMENTS[key]}\n"
        if plain[key] is not None:
            yield _entry(key, plain[key])


def _entry(key: str, value: Any) -> str:
    if key in ("provenance", "capacity_provenance"):
        return f"{key}: >-\n{textwrap.fill(value, 100, initial_indent='  ', subsequent_indent='  ')}\n"
    inline = None if isinstance(value, dict | list) else False  # None: innermost collections on one line
    return yaml.safe_dump({key: value}, sort_keys=False, width=100, default_flow_style=inline)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")
