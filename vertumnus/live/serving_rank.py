"""What a rank's process does: register, build what it is asked for, serve.

One compute thread; it ends by Shutdown, with its coordinator, or with an error on its last line.
"""

import os
import sys

import torch

from vertumnus.domain.errors import ConfigError, ProtocolError
from vertumnus.live.control import ControlLink
from vertumnus.live.decode import DecodeRank
from vertumnus.live.launch import BAD_INPUT
from vertumnus.live.messages import PROTOCOL_VERSION, Register, Shutdown, Welcome
from vertumnus.live.prefill_rank import PrefillRank
from vertumnus.live.rank_context import IDLE_MS, RankContext


def serve(context: RankContext) -> None:
    """Register, build what Welcome asks for, serve until told to leave; the process ends here."""
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_grad_enabled(False)
    link = context.connect()
    try:
        _serve(context, link)
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(BAD_INPUT)
    link.close()
    sys.stderr.flush()
    os._exit(0)  # there is nothing to save, and taking torch and its groups down takes a second


def _serve(context: RankContext, link: ControlLink) -> None:
    link.send(Register(PROTOCOL_VERSION, os.getpid()))
    welcome = None
    while welcome is None:
        welcome = context.receive(link, IDLE_MS)
    if isinstance(welcome, Shutdown):
        return
    if not isinstance(welcome, Welcome):
        raise ProtocolError(f"expected Welcome, got {type(welcome).__name__}")
    make = PrefillRank if context.peer.pool == "prefill" else DecodeRank
    make(context, link, welcome).serve()
