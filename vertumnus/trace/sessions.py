"""Which row of a trace continues which: by the trace's own sessions, else by what its prompts begin with."""

from collections.abc import Sequence

from vertumnus.domain.units import BlockKey, Tokens
from vertumnus.trace.blocks import ChainedKeys
from vertumnus.trace.rows import TraceRow


def predecessors(rows: Sequence[TraceRow], block_tokens: Tokens) -> list[int | None]:
    """Return for each of *rows*, in order of arrival, the place of the row that it continues.

    Where no row names a session, a prompt continues the latest one whose whole blocks it begins with and
    which is shorter, if that one was the first to have its last whole block: a prompt that many share is
    nobody's turn.
    """
    if any(row.follows is not None for row in rows):
        return _by_session(rows)
    return _by_prefix(rows, block_tokens)


def _by_session(rows: Sequence[TraceRow]) -> list[int | None]:
    latest: dict[str, int] = {}
    found: list[int | None] = []
    for place, row in enumerate(rows):
        found.append(None if row.follows is None else latest.get(row.follows))
        if row.session is not None:
            latest[row.session] = place
    return found


def _by_prefix(rows: Sequence[TraceRow], block_tokens: Tokens) -> list[int | None]:
    chained = ChainedKeys()
    owner: dict[BlockKey, int] = {}
    found: list[int | None] = []
    for place, row in enumerate(rows):
        seen = len(chained)
        keys = chained.keys(row.block_ids or (), row.input_tokens, block_tokens)
        before = next((owner[key] for key in reversed(keys) if key in owner), None)
        is_longer = before is not None and rows[before].input_tokens < row.input_tokens
        found.append(before if is_longer else None)
        if keys and keys[-1] >= seen:  # keys are dense in order of appearance
            owner[keys[-1]] = place
    return found
