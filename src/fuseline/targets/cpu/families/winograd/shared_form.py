"""What kernels by minimal filtering have in common that are the same code up to numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedForm:
    """Products in tiles of `height` rows, and of one less where `short`; channels in pieces of `piece` vectors, all of
    them `whole_pieces` or not; whether tiles end with the image, per window axis (`whole_tiles`); whether columns of a
    block are divided among workgroups (`groups`); so many vectors of columns in a pass (`vectors`; 0: that differs);
    whether there are partial sums."""

    height: int
    short: bool
    piece: int
    whole_pieces: bool
    whole_tiles: tuple[bool, ...]
    groups: bool
    vectors: int
    in_partial_sums: bool
