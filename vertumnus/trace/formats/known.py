"""The formats by name, with what their files mean where a config leaves it open."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.domain.units import Nanoseconds, Tokens

FormatName: TypeAlias = Literal[
    "mooncake",
    "mooncake_plus",
    "bailian",
    "azure",
    "burst_gpt",
    "share_gpt",
    "l_eval",
    "prompts",
    "parquet",
]
Unit: TypeAlias = Literal["ms", "s"]
UNIT_NS: Mapping[Unit, Nanoseconds] = {"ms": 1_000_000, "s": 1_000_000_000}
EmptyOutputs: TypeAlias = Literal["error", "drop", "keep"]


class Known(NamedTuple):
    """What a format's files have in common."""

    unit: Unit | None
    """Of their time stamps; None: they are dates, nanoseconds, or not there."""
    block_tokens: Tokens
    """Tokens behind one hash id, or what a pool's blocks are taken to be where there are no ids."""


KNOWN: Mapping[FormatName, Known] = {
    "mooncake": Known("ms", 512),
    "mooncake_plus": Known("ms", 512),
    "bailian": Known("s", 16),
    "azure": Known(None, 512),
    "burst_gpt": Known("s", 512),
    "share_gpt": Known(None, 512),
    "l_eval": Known(None, 512),
    "prompts": Known(None, 512),
    "parquet": Known(None, 512),
}
