"""When two greedy outputs count as equal, although sums in another order round differently."""

from collections.abc import Sequence

import torch
from torch import Tensor

NEAR_TIE = 1e-4
"""Two best logits closer than this may change places between two ways of computing them."""


def first_difference(output: Sequence[int], reference: Sequence[int], logits_TV: Tensor) -> int | None:
    """Return the step at which *output* departs from *reference*, None when they agree.

    Row t of *logits_TV* chose ``reference[t]``. A departure where its two best logits are a near tie is
    none, and nothing after it is compared: the outputs go on from different texts.
    """
    for step, (mine, wanted) in enumerate(zip(output, reference, strict=True)):
        if mine != wanted:
            best = torch.topk(logits_TV[step].float(), 2).values
            return None if float(best[0] - best[1]) < NEAR_TIE else step
    return None
