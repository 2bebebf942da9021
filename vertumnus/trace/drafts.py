"""Requests of a generator, column by column, and the way from there to rows with block ids."""

from collections.abc import Sequence
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import Floats, Integers

BLOCK_TOKENS: Tokens = 512
"""Of every generated trace."""
NO_PARENT = -1


class Drafts(NamedTuple):
    """Requests that know what they share, and have no block ids yet."""

    at_s: Floats
    """When they are meant to arrive [s]."""
    input_tokens: Integers
    output_tokens: Integers
    prompt: Integers
    """Which of the generator's shared prompts each one begins with."""
    parent: Integers
    """Place of the turn that a follow-up extends, or NO_PARENT."""


def joined(*parts: Drafts) -> Drafts:
    """Return the drafts of all *parts*, which have no parents outside their own part but the first's."""
    return Drafts(*map(np.concatenate, zip(*parts, strict=True)))


def to_rows(
    drafts: Drafts, order: Integers, stamps: Sequence[Nanoseconds], prompt_blocks: Sequence[int]
) -> list[TraceRow]:
    """Put *drafts* on *stamps* in *order*; parents come first there. Ids are dense in order of appearance.

    *prompt_blocks* holds the whole blocks of each shared prompt. A follow-up shares the whole blocks
    of its parent instead.
    """
    fresh = count()
    prompts = [tuple(islice(fresh, blocks)) for blocks in prompt_blocks]
    ids_of: dict[int, tuple[int, ...]] = {}
    session_of = _sessions(drafts.parent)
    input_tokens, output_tokens, prompt, parent = (column.tolist() for column in drafts[1:])
    rows = []
    for place, stamp in zip(order.tolist(), stamps, strict=True):
        tokens = input_tokens[place]
        shared = prompts[prompt[place]]
        if parent[place] != NO_PARENT:
            shared = ids_of[parent[place]][: input_tokens[parent[place]] // BLOCK_TOKENS]
        private = islice(fresh, blocks_for(tokens, BLOCK_TOKENS) - len(shared))
        ids_of[place] = (*shared, *private)
        session = session_of.get(place)
        rows.append(TraceRow(stamp, tokens, output_tokens[place], ids_of[place], session, session))
    return rows


def _sessions(parent: Integers) -> dict[int, str]:
    """Return the session of each place that continues another or is continued: its first turn's place."""
    session_of: dict[int, str] = {}
    for place in np.flatnonzero(parent != NO_PARENT).tolist():
        path = [place]
        while path[-1] not in session_of and parent[path[-1]] != NO_PARENT:
            path.append(int(parent[path[-1]]))
        session = session_of.get(path[-1], str(path[-1]))
        session_of.update(dict.fromkeys(path, session))
    return session_of
