"""What the best conceivable prefix cache would have saved (footnote 3 of the evaluation)."""

from vertumnus.domain.request import Request, reusable_tokens
from vertumnus.domain.units import BlockKey, Tokens


class UnlimitedCache:
    """Keeps every prefix of every request that arrived, at once and everywhere."""

    def __init__(self, block_tokens: Tokens) -> None:
        self._block_tokens = block_tokens
        self._seen: set[BlockKey] = set()

    def admit(self, request: Request) -> Tokens | None:
        """Return P of *request* here and keep its blocks; None where its content is unknown."""
        keys = request.block_keys
        if keys is None:
            return None
        seen = self._seen
        before = len(seen)
        seen.update(keys)
        # a key has one parent and arrives after it: the keys seen earlier are the leading ones
        known = len(keys) - (len(seen) - before)
        return reusable_tokens(request.input_tokens, self._block_tokens, known)
