"""What a client asks for (sec. 3.1) and what it was promised (sec. 3.3)."""

from msgspec import Struct

from vertumnus.domain.units import BlockKey, Nanoseconds, RequestId, Tokens


class Request(Struct, frozen=True, gc=False, array_like=True):
    """One prompt: L input tokens that arrive at t_i, and the output that it asks for.

    Neither prompt nor tokens are here: facts and the log carry lengths and prefix identities only.
    """

    request_id: RequestId
    arrival_ns: Nanoseconds
    """t_i: planned arrival at the scheduler, from the start of the run [ns]."""
    input_tokens: Tokens
    """L >= 1."""
    output_tokens: Tokens
    """Tokens to generate, >= 1; the first of them ends the TTFT."""
    block_keys: tuple[BlockKey, ...] | None
    """One key for each whole block of the prompt, root first; None where the content is unknown."""
    ttft_target_ns: Nanoseconds | None = None
    """tau: the TTFT that counts as met [ns]."""
    tpot_target_ns: Nanoseconds | None = None
    """delta: the mean time per output token after the first that counts as met [ns]."""


def reusable_tokens(input_tokens: Tokens, block_tokens: Tokens, held_blocks: int) -> Tokens:
    """Return P, the tokens that *held_blocks* leading blocks save a prompt of *input_tokens*.

    Only whole blocks count and one token is always computed, since the last position's logits are
    needed: P <= floor((L - 1) / block) * block, so R = L - P >= 1.
    """
    return min(held_blocks, (input_tokens - 1) // block_tokens) * block_tokens


def blocks_for(input_tokens: Tokens, block_tokens: Tokens) -> int:
    """Return the block slots that a prompt of *input_tokens* fills, a partial last one included."""
    return -(-input_tokens // block_tokens)
