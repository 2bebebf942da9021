"""Colours and marks of all figures: Okabe and Ito's palette, told apart with any colour vision.

Figures are drawn on white of their own, so that they look the same on a light and on a dark page.
"""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Whatever a colour tells, a mark, a dash or a hatch tells too."""
MARKERS = "osD^vP*"
DASHES = ("-", "--", ":")
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo")
