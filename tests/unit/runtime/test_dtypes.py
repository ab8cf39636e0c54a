"""Element types by name."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime.dtypes import dtype_named


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "uint64", "bool"])
def test_names_of_numpy(name: str) -> None:
    assert dtype_named(name) == np.dtype(name)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_names_of_ml_dtypes(name: str) -> None:
    assert dtype_named(name) == np.dtype(getattr(ml_dtypes, name))


def test_a_name_nobody_knows() -> None:
    with pytest.raises(FuselineError, match="unknown element type 'float7'") as caught:
        dtype_named("float7")
    assert caught.value.code == "E0401"


def test_a_type_of_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(FuselineError, match="needs the ml_dtypes package") as caught:
        dtype_named("float7")
    assert caught.value.code == "E0503"
    assert dtype_named("float64") == np.float64  # NumPy's own need nothing
