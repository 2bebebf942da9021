"""What the books of the coordinator ask to be sent."""

from typing import NamedTuple

from vertumnus.live.messages import Peer, ToRank


class Posting(NamedTuple):
    """A message for a peer."""

    peer: Peer
    body: ToRank
