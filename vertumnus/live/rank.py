"""A rank's process: ``python -m vertumnus.live.rank``, started by the coordinator only.

It is bound to its coordinator before it imports torch, which takes seconds, on a busy machine many: what it
does then is in `serving_rank`.
"""

import argparse
import os
import sys

from vertumnus.live.launch import RUN_VARIABLE, bind_to_parent
from vertumnus.live.messages import Peer


def main() -> None:
    """Serve as the rank that the arguments name until told to leave, or until the coordinator ends."""
    found = _arguments(sys.argv[1:])
    run = os.environ.pop(RUN_VARIABLE)
    bind_to_parent(found.parent)
    from vertumnus.live.rank_context import RankContext
    from vertumnus.live.serving_rank import serve

    peer = Peer(found.pool, found.rank)
    serve(RankContext(peer, found.incarnation, found.endpoint, run, found.parent))


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vertumnus.live.rank", description="Started by the live engine.")
    parser.add_argument("--pool", choices=["prefill", "decode"], required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--incarnation", type=int, required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--parent", type=int, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
