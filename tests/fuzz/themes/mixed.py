"""Parts of every theme behind one another: what each of them alone does not meet."""

from __future__ import annotations

from tests.fuzz.theme import Theme
from tests.fuzz.themes import attention, computed_operands, convolutions, eight_bits, moves, resizes

OTHERS = [module.THEME for module in (attention, computed_operands, convolutions, eight_bits, moves, resizes)]

THEME = Theme("mixed", sizes=(1, 2, 3, 5, 8, 16, 17, 33, 64, 129), parts=(3, 10))
THEME.first += [part for theme in OTHERS for part in theme.first]
THEME.others += [part for theme in OTHERS for part in theme.others]
