"""The result of a program as MLIR text, on which both targets agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import fuseline


def agreed(text: str, feeds: dict[str, Any], tmp_path: Path) -> Any:
    """The one result, on which native code and the interpreter agree."""
    path = tmp_path / "p.mlir"
    path.write_text(text)
    native, reference = (
        list(fuseline.compile(path, target=target, threads=1).run(feeds).values()) for target in ("cpu", "interpreter")
    )
    for got, want in zip(native, reference, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return native[0]
