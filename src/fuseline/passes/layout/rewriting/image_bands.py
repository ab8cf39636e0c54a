"""Whether what makes an image, and the depthwise window over it, would share bands of rows (`fuse-row-bands`): asked
before there are dispatches, of ops that a reshape keeps apart.

    x · w over (67081, 32) ── reshape ──> window over (259, 259, 32) ──> ... ──> product

A product that makes an image row by row instead of in one loop gains nothing by that alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import cast

from xdsl.dialects import linalg
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.cost import num_bytes
from fuseline.analysis.structured import DENSE, Kind, StructuredOp, is_generic, kind
from fuseline.ir.costs import assumed_size
from fuseline.passes.dispatch.band_height import BandChoice, choose_cached_bands, roots_ns
from fuseline.passes.dispatch.banded_sizes import BandedSizes
from fuseline.passes.dispatch.region_rows import RowRead
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.reshapes import is_reshape
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.targets.target import Refusal

_MOST_OPS_ON = 8
"""Ops between a window and the product behind it: a bias, an activation, a rounding."""


def image_bands(scope: Scope, image: SSAValue, makers: Iterable[linalg.ops.GenericOp]) -> BandChoice | Refusal:
    """The bands of `image`, which `makers` would make and only depthwise windows read, that are predicted to be faster
    than storing it, or why there are none."""
    users, sizes = users_of(image), scope.dims(image)
    if len(users) != 1:
        return Refusal("window", "several windows read the image")
    window = cast(linalg.ops.GenericOp, users[0])
    found = _sizes(scope, image, window, makers)
    if not all(isinstance(size, int) for size in sizes) or found is None:
        return Refusal("loops", "the rows of the image are not known, or no window slides over them")
    choice = choose_cached_bands(found, scope.ctx.target)
    if isinstance(choice, BandChoice) and not choice.is_within():
        return Refusal("unprofitable", f"{choice.heights} would not be faster", choice.numbers)
    return choice


def _sizes(
    scope: Scope, image: SSAValue, window: linalg.ops.GenericOp, makers: Iterable[linalg.ops.GenericOp]
) -> BandedSizes | None:
    """What bands are weighed by; None where the window slides over no rows of known number."""
    view, target = StructuredOp(window), scope.ctx.target
    roles, extents = convolution_dims(view), view.loops(scope.shapes)
    if roles is None or not roles.spatial:
        return None
    slid, axis = roles.spatial[0], roles.spatial_axes[0]
    rows, reached, (made,) = extents[slid.loop], extents[slid.window], window.results
    if not isinstance(rows, int) or not isinstance(reached, int):
        return None
    follower = _product_behind(made)
    between = assumed_size(num_bytes(made, scope.shapes)) if follower is not None else 0
    return BandedSizes(
        image_bytes=assumed_size(num_bytes(image, scope.shapes)),
        image_rows=assumed_size(scope.dims(image)[axis]),
        rows=rows,
        read=RowRead(image, axis, slid.stride, slid.dilation * (reached - 1) + slid.offset),
        maker_ns=roots_ns(makers, scope.shapes, target),
        reader_ns=roots_ns([window, *([follower] if follower is not None else [])], scope.shapes, target),
        handed_on=between,
        beside=between,
        is_outermost=prod(map(assumed_size, scope.dims(image)[:axis])) == 1,
    )


def _product_behind(value: OpResult) -> linalg.ops.GenericOp | None:
    """The product that alone reads `value`, reshapes and what is computed point by point between them."""
    for _ in range(_MOST_OPS_ON):
        users = users_of(value)
        if len(users) != 1:
            return None
        (user,) = users
        if is_generic(user) and kind(user) in DENSE:
            return user
        if not is_reshape(user) and kind(user) is not Kind.ELEMENTWISE:
            return None
        value = user.results[0]
    return None
