"""The decode side's places: which decode rank takes a prompt, and which prompts wait for one (D8).

Decode batching and kernels are not ours to decide (sec. 8); the pool only counts sequences and
tokens, so that a hand-off starts when its decode rank has room for the whole sequence.
"""

from collections import deque

from vertumnus.domain.errors import InvariantError
from vertumnus.domain.units import Rank, RequestId, Tokens
from vertumnus.workers.config import DecodeConfig


class DecodePool:
    """Sequence slots and KV tokens of each decode rank."""

    def __init__(self, config: DecodeConfig) -> None:
        self._config = config
        self._sequences: list[dict[RequestId, Tokens]] = [{} for _ in range(config.ranks)]
        self._tokens: list[Tokens] = [0] * config.ranks
        self._lost: set[Rank] = set()
        self._waiting: deque[tuple[RequestId, Tokens]] = deque()

    @property
    def in_use(self) -> int:
        """Sequences that hold a slot."""
        return sum(len(sequences) for sequences in self._sequences)

    @property
    def is_gone(self) -> bool:
        """Whether every decode rank is lost."""
        return len(self._lost) == self._config.ranks

    def admit(self, request_id: RequestId, tokens: Tokens) -> Rank | None:
        """Give the sequence a decode rank, or put it last in the line and return None.

        Among the ranks with room the one with the fewest tokens wins, then the lowest.
        """
        rank = None if self._waiting else self._roomiest(tokens)
        if rank is None:
            self._waiting.append((request_id, tokens))
        else:
            self._place(rank, request_id, tokens)
        return rank

    def release(self, rank: Rank, request_id: RequestId) -> None:
        """Give back the sequence's slot and tokens."""
        self._tokens[rank] -= self._sequences[rank].pop(request_id)

    def withdraw(self, request_id: RequestId) -> bool:
        """Take a sequence out of the line; return whether it was there."""
        for entry in self._waiting:
            if entry[0] == request_id:
                self._waiting.remove(entry)
                return True
        return False

    def admit_waiting(self) -> list[tuple[RequestId, Rank]]:
        """Admit those at the head of the line that now fit, in their order."""
        admitted = []
        while self._waiting:
            request_id, tokens = self._waiting[0]
            rank = self._roomiest(tokens)
            if rank is None:
                break
            self._waiting.popleft()
            self._place(rank, request_id, tokens)
            admitted.append((request_id, rank))
        return admitted

    def lose(self, rank: Rank) -> list[RequestId]:
        """Take *rank* out of service and return the sequences that were on it."""
        self._lost.add(rank)
        return list(self._sequences[rank])

    def check(self) -> None:
        """Raise InvariantError unless tokens and sequences agree and nobody waits for free room."""
        for rank, sequences in enumerate(self._sequences):
            if self._tokens[rank] != sum(sequences.values()):
                raise InvariantError(f"decode rank {rank}: tokens and sequences disagree")
        if self._waiting and self._roomiest(self._waiting[0][1]) is not None:
            raise InvariantError("a hand-off waits although a decode rank has room")

    def _roomiest(self, tokens: Tokens) -> Rank | None:
        config = self._config
        open_ranks = [
            (self._tokens[rank], rank)
            for rank in range(config.ranks)
            if rank not in self._lost
            and len(self._sequences[rank]) < config.slots_per_rank
            and self._tokens[rank] + tokens <= config.tokens_per_rank
        ]
        return min(open_ranks)[1] if open_ranks else None

    def _place(self, rank: Rank, request_id: RequestId, tokens: Tokens) -> None:
        self._sequences[rank][request_id] = tokens
        self._tokens[rank] += tokens
