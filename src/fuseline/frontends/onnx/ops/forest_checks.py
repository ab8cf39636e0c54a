"""Whether the nodes that a model lists make trees: what leads nowhere is refused, whoever would run it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops.forests import LEAF, MEMBER, Nodes
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.rounds import rounds

Array = NDArray[Any]
MOST_FEATURES = 1 << 31


def well_formed(nodes: Nodes, label: str) -> Nodes:
    """`nodes`, whose roots and children are among them, of which none is below itself, and whose features and modes are
    numbers that there can be.

    Raises:
        FuselineError: E0107 naming the node `label`, they make no trees.
        NoNativeLowering: a mode is unknown.
    """
    inner = nodes.mode != LEAF
    require_among(nodes.roots, len(inner), "a root", label)
    for children in (nodes.passed, nodes.failed):
        require_among(children[inner], len(inner), "a child", label)
    require_among(nodes.feature[inner], MOST_FEATURES, "a feature", label)
    if not _ends(nodes.passed, nodes.failed, inner):
        raise FuselineError("E0107", "a node of a tree is below itself", node=label)
    if not np.isin(nodes.mode[inner], np.arange(MEMBER + 1)).all():
        raise NoNativeLowering("unsupported-mode", f"nodes_modes {sorted(set(nodes.mode[inner].tolist()))}")
    return nodes


def require_among(positions: Array, count: int, what: str, label: str) -> None:
    """Raise FuselineError (E0107) unless `positions` are numbers from 0 to before `count`."""
    if len(positions) and not 0 <= positions.min() <= positions.max() < count:
        raise FuselineError(
            "E0107", f"{what} of a tree is number {positions.min()}..{positions.max()} of {count}", node=label
        )


def _ends(passed: Array, failed: Array, inner: Array) -> bool:
    """Whether every way down ends: nodes are taken away once nothing above them is left, each once."""
    above = np.bincount(np.concatenate([passed[inner], failed[inner]]), minlength=len(inner))
    here, taken = np.flatnonzero(above == 0), 0
    for _ in rounds("taking nodes of trees away", most=len(inner) + 1):
        if not here.size:
            break
        taken += here.size
        asked = here[inner[here]]
        below = np.concatenate([passed[asked], failed[asked]])
        np.subtract.at(above, below, 1)
        here = np.unique(below[above[below] == 0])
    return taken == len(inner)
