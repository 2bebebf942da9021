"""What an unlimited cache of the whole pool would reuse, in order of arrival: the upper bound."""

from vertumnus.domain.request import Request, reusable_tokens
from vertumnus.domain.units import BlockKey, Tokens


class OracleCache:
    """A cache that never evicts and that every request can reach at once."""

    def __init__(self, block_tokens: Tokens) -> None:
        self._block_tokens = block_tokens
        self._held: set[BlockKey] = set()

    def reusable_tokens(self, request: Request) -> Tokens | None:
        """Return P of *request* after all earlier ones, and hold its blocks from now on.

        None where the request's content is unknown.
        """
        if request.block_keys is None:
            return None
        held_blocks = _leading(request.block_keys, self._held)
        self._held.update(request.block_keys[held_blocks:])
        return reusable_tokens(request.input_tokens, self._block_tokens, held_blocks)


def _leading(keys: tuple[BlockKey, ...], held: set[BlockKey]) -> int:
    for place, key in enumerate(keys):
        if key not in held:
            return place
    return len(keys)
