"""Random ensembles of decision trees, as the attributes of the operators of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
FEATURES = 5


class Ensemble:
    """Trees of random shape over `FEATURES` features; thresholds are quarters, so that features meet them."""

    def __init__(
        self, seed: int, trees: int, depth: int, modes: tuple[str, ...] = MODES[:1], missing: bool = False
    ) -> None:
        self.rng, self.modes = np.random.default_rng(seed), modes
        self.nodes: dict[str, list[Any]] = {
            key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
        }
        self.missing: list[int] | None = [] if missing else None
        self.leaves: list[tuple[int, int]] = []
        for tree in range(trees):
            self._grow(tree, int(self.rng.integers(0, depth + 1)))

    def _grow(self, tree: int, depth: int) -> None:
        pending, free = [(0, depth)], 1
        while pending:
            number, room = pending.pop(int(self.rng.integers(len(pending))))
            inner = room > 0 and (room == depth or self.rng.random() < 0.8)
            values = (tree, number, int(self.rng.integers(FEATURES)), float(self.rng.integers(-6, 7)) / 4)
            mode = str(self.rng.choice(self.modes)) if inner else "LEAF"
            for key, value in zip(
                self.nodes, (*values, mode, free if inner else 0, free + 1 if inner else 0), strict=True
            ):
                self.nodes[key].append(value)
            if self.missing is not None:
                self.missing.append(int(self.rng.integers(2)))
            if inner:
                pending += [(free, room - 1), (free + 1, room - 1)]
                free += 2
            else:
                self.leaves.append((tree, number))

    def attributes(self, kind: str, targets: list[list[int]], positive: bool = False) -> dict[str, Any]:
        """Those of nodes and of what leaf i says: something of each target in `targets[i]`."""
        out: dict[str, Any] = {f"nodes_{key}": values for key, values in self.nodes.items()}
        if self.missing is not None:
            out["nodes_missing_value_tracks_true"] = self.missing
        said = [
            (tree, node, target) for (tree, node), some in zip(self.leaves, targets, strict=True) for target in some
        ]
        weights = self.rng.standard_normal(len(said))
        out |= {f"{kind}_{name}": [entry[i] for entry in said] for i, name in enumerate(("treeids", "nodeids", "ids"))}
        return out | {f"{kind}_weights": [float(abs(w) / 4 if positive else w) for w in weights]}

    def each(self, targets: int) -> list[list[int]]:
        """Every leaf about every target."""
        return [list(range(targets)) for _ in self.leaves]

    def own(self, targets: int) -> list[list[int]]:
        """Every tree about one target."""
        return [[tree % targets] for tree, _ in self.leaves]

    def some(self, targets: int) -> list[list[int]]:
        """Every leaf about any one target."""
        return [[int(self.rng.integers(targets))] for _ in self.leaves]


def rows(count: int, dtype: Any = np.float32, missing: bool = False) -> NDArray[Any]:
    """Features that often are a threshold, and some that are no number."""
    rng = np.random.default_rng(count)
    x = (rng.integers(-8, 9, (count, FEATURES)) / 4).astype(dtype)
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    return x
