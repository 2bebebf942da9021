"""Families of hot prefixes: what many prompts of a trace begin with."""

import numpy as np
from msgspec import Struct

from vertumnus.domain.units import Tokens
from vertumnus.trace.sampling import Integers
from vertumnus.trace.stats import Columns

LEAST_SHARE = 0.01
"""Of the requests: a prefix of fewer is not hot."""
STAYING_SHARE = 0.9
"""Of a prefix's prompts: when so many go on alike, the prefix goes on, too."""
MOST_FAMILIES = 10


class Family(Struct, frozen=True, kw_only=True):
    """A prefix and the prompts that begin with it."""

    prefix_tokens: Tokens
    """Length of the prefix, whole blocks."""
    requests: int
    request_share: float
    """Of all requests."""


def families(columns: Columns) -> list[Family]:
    """Return the hot prefixes of a trace, the most used one first; one may be the beginning of another."""
    uses = np.frombuffer(columns.uses, dtype=np.uint32).astype(np.int64)
    requests = len(columns.arrivals)
    parents = columns.keys.parents()
    hot = np.flatnonzero(uses >= max(2, LEAST_SHARE * requests))
    followed = _most_used_child(uses, parents)
    ends = [key for key in hot.tolist() if followed[key] < STAYING_SHARE * uses[key]]
    ends.sort(key=lambda key: (-uses[key], key))
    return [
        Family(
            prefix_tokens=_depth(key, parents) * columns.block_tokens,
            requests=int(uses[key]),
            request_share=int(uses[key]) / requests,
        )
        for key in ends[:MOST_FAMILIES]
    ]


def _most_used_child(uses: Integers, parents: Integers) -> Integers:
    """Return for each key how often the most used block below it is used."""
    most = np.zeros(len(uses) + 1, dtype=np.int64)  # the last place takes what has no parent
    np.maximum.at(most, parents, uses)
    return most[:-1]


def _depth(key: int, parents: Integers) -> int:
    depth = 0
    while key >= 0:
        key, depth = int(parents[key]), depth + 1
    return depth
