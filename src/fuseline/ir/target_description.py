"""What passes may know of a target: numbers and names, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseline.ir.costs import ASSUMED_COSTS, MachineCosts
from fuseline.ir.work_costs import ASSUMED_WORK_COSTS, WorkCosts

TILE_ROLES = ("OH", "OW", "OC", "IC", "M", "N", "K")
"""Height, width and channels of a convolution's result, its input channels; rows, columns and summed loop of a
contraction."""

LARGEST_TILE = 1 << 16
"""The largest multiple that a loop may be asked to be of."""

TILE_CLASSES = ("pointwise", "depthwise")
"""Convolutions with multiples of their own: those of one window element, which are products over the loops of an image,
and those of each channel by itself (`OC` is the channel)."""

NUMERICS = ("strict", "default", "fast")
"""How exact kernels are: every sum as the model has it, within the stated error bounds, or as fast as can be."""


@dataclass(frozen=True, slots=True)
class TargetRules:
    """What a target says of fusion rules: files with more of them, the names of the only ones (empty: all) and of those
    that are off. `locations`: where a name stands in its description."""

    files: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    locations: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)


@dataclass(frozen=True, slots=True)
class TargetDescription:
    """What passes may know of a target.

    `numerics` says how exact its kernels are, one of `NUMERICS`.

    `scratch_bytes_limit` bounds the scratch one workgroup of a dispatch may use (bytes), `image_bytes_limit` that of
    one whose values between roots are images that would lie in memory otherwise (`channel-window`), `band_bytes_limit`
    what a workgroup may keep of an image that is made band by band (`fuse-row-bands`); `binding_limit` the buffers a
    dispatch may bind (a product of 8-bit numbers has about five: what it reads and makes, weights, a scale and a bias
    of each channel), `arms_limit` the independent parts it may have. `roots_limit` the roots that a
    workgroup may run one after the other, over scratch: each is code of its own in the kernel. `code_limit` bounds what
    a dispatch of several ops may have of code, in operations of about 20 bytes; 0: any. `tile_multiples` are loop
    lengths that the matrix unit takes, by role (one of `TILE_ROLES`): loops grow to multiples of them (`pad-to-tile`);
    none for a target that takes any. `class_multiples`: those of the convolutions in `TILE_CLASSES`, which hold for
    these in place of the others.

    `streamed_points`: a target that evaluates a softmax and the product behind it with a running maximum and sum meets
    so many points of their common loop at a time, at the least; 0 for one that needs all of them at once.
    `multiplies_bytes`: products of bytes, one of them without a sign, are added up in 32 bits faster than those of 16
    bits: what products read is stored so (`multiply-bytes`). `costs`: what
    work takes on it, for weighing merges; `work_costs`: for predicting dispatches. `rules`: which fusion rules are
    asked for it.
    """

    name: str
    threads: int = 1
    scratch_bytes_limit: int = 256 * 1024
    image_bytes_limit: int = 1024 * 1024
    band_bytes_limit: int = 2 * 1024 * 1024
    binding_limit: int = 48
    arms_limit: int = 16
    roots_limit: int = 8
    code_limit: int = 10_000
    streamed_points: int = 0
    multiplies_bytes: bool = False
    numerics: str = "default"
    tile_multiples: tuple[tuple[str, int], ...] = ()
    class_multiples: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    costs: MachineCosts = ASSUMED_COSTS
    work_costs: WorkCosts = ASSUMED_WORK_COSTS
    rules: TargetRules = TargetRules()

    @property
    def has_tiles(self) -> bool:
        """Whether any loops grow to whole tiles."""
        tables = [self.tile_multiples, *(multiples for _, multiples in self.class_multiples)]
        return any(multiple > 1 for table in tables for _, multiple in table)
