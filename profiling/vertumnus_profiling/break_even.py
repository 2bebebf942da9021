"""From which length on a larger degree pays (Fig. 2)."""

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Tokens

LONGEST: Tokens = 1 << 20
"""Beyond this no break-even is looked for [tokens]."""


def break_even(model: PrefillTimeModel, degree: int, base: int, cached: Tokens = 0) -> Tokens | None:
    """Return the least R from which on *degree* is predicted to be faster than *base*.

    None when it is not even at `LONGEST` tokens. The difference of two degrees' times is a parabola in
    R, open to the side of its last sign: so from the far end inwards there is one change to find.
    """

    def is_faster(uncached: Tokens) -> bool:
        return model.predict(degree, uncached, cached) < model.predict(base, uncached, cached)

    if not is_faster(LONGEST):
        return None
    slower = next((r for r in _halvings(LONGEST) if not is_faster(r)), 0)
    faster = max(1, 2 * slower)
    while faster - slower > 1:
        middle = (slower + faster) // 2
        slower, faster = (slower, middle) if is_faster(middle) else (middle, faster)
    return faster


def _halvings(tokens: Tokens) -> list[Tokens]:
    return [tokens >> shift for shift in range(1, tokens.bit_length())]
