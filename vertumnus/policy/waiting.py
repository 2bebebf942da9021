"""Requests that no worker can take now, though one may soon: tried again when a worker opens (D6)."""

from vertumnus.domain.units import RequestId


class Waiting:
    """In order of their first wait."""

    def __init__(self) -> None:
        self._ids: dict[RequestId, None] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, request_id: RequestId) -> None:
        """Let a request wait."""
        self._ids[request_id] = None

    def discard(self, request_id: RequestId) -> None:
        """Forget a request that ended."""
        self._ids.pop(request_id, None)

    def take_all(self) -> list[RequestId]:
        """Return all who wait, first come first, and let nobody wait any more."""
        ids = list(self._ids)
        self._ids.clear()
        return ids
