# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# jax is an extra that the checks run without.
"""What `iree-compile --compile-to=input` makes of a JAX program is read as well, and computes the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax", reason="needs the extra jax: pip install 'fuseline[jax]'")

import fuseline  # noqa: E402
from tests.jax.models import MODELS, lstm  # noqa: E402

pytestmark = [pytest.mark.jax, pytest.mark.skipif(shutil.which("iree-compile") is None, reason="needs iree-compile")]


@pytest.mark.parametrize("family", sorted(MODELS))
def test_both_texts_compute_what_jitted_jax_gives(family: str, tmp_path: Path):
    from jax import export

    function, arguments = lstm(6) if family == "lstm" else MODELS[family]()
    exported = export.export(jax.jit(function))(*arguments)
    written, lowered = tmp_path / "hlo.mlir", tmp_path / "input.mlir"
    written.write_text(exported.mlir_module())
    command = ["iree-compile", "--compile-to=input", "--iree-hal-target-device=local"]
    command += ["--iree-hal-local-target-device-backends=llvm-cpu", str(written), "-o", str(lowered)]
    subprocess.run(command, check=True, capture_output=True)
    leaves = [np.asarray(jax.numpy.asarray(leaf)) for leaf in jax.tree.leaves(arguments)]
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    for path in (written, lowered):
        model = fuseline.compile(path)
        feeds = {item.name: leaves[i] for item, i in zip(model.inputs, exported.module_kept_var_idx, strict=True)}
        for found, expected in zip(model.run(feeds).values(), wanted, strict=True):
            np.testing.assert_allclose(found, np.asarray(expected), rtol=2e-4, atol=2e-4, err_msg=path.name)
