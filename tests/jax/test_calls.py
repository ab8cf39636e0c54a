"""Array functions of JAX, each compiled and compared with jitted JAX; what is refused is refused with its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax", reason="needs the extra jax: pip install 'fuseline[jax]'")

import fuseline.jax  # noqa: E402
from tests.draws import RNG  # noqa: E402
from tests.jax.calls import CALLS, arguments  # noqa: E402

pytestmark = pytest.mark.jax

REFUSED = {
    "approx-max": "calls @ApproxTopK",
    "bitcast-bytes": "another width",
    "cholesky": "calls @lapack_spotrf_ffi",
    "complex": "complex",
    "eigh": "calls @lapack_ssyevd_ffi",
    "expm": "calls @lapack_sgetrf_ffi",
    "fft": "complex",
    "inv": "calls @lapack_sgetrf_ffi",
    "qr": "calls @lapack_sgeqrf_ffi",
    "solve": "calls @lapack_sgetrf_ffi",
    "svd": "calls @lapack_sgesdd_ffi",
    "tri-solve": "calls @lapack_strsm_ffi",
}
"""Functions that are refused (E0306), and what is said of each (docs/jax.md has the table)."""


def _plain(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


@pytest.mark.parametrize("name", sorted(set(CALLS) - set(REFUSED)))
def test_a_function_gives_what_jitted_jax_gives(name: str):
    function, letters = CALLS[name]
    given = arguments(letters)
    found, wanted = fuseline.jax.compile(function, *given, threads=1)(*given), jax.jit(function)(*given)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for got, expected in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(_plain(got), _plain(expected), rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted(set(CALLS) - set(REFUSED)))
def test_a_function_of_halves(name: str, dtype: str):
    import ml_dtypes

    function, letters = CALLS[name]
    given = arguments(letters, np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype))
    try:
        wanted = jax.jit(function)(*given)
    except (KeyError, NotImplementedError, TypeError, ValueError) as error:
        pytest.skip(f"JAX itself refuses it: {error}")
    found = fuseline.jax.compile(function, *given, threads=1)(*given)
    for got, expected in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert got.dtype == expected.dtype
        tolerance = 2e-2 if dtype == "float16" else 1e-1
        np.testing.assert_allclose(_plain(got), _plain(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_names_its_place(name: str):
    function, letters = CALLS[name]
    with pytest.raises(fuseline.FuselineError, match=REFUSED[name]) as caught:
        fuseline.jax.compile(function, *arguments(letters), target="null")
    assert caught.value.code == "E0306"
    assert caught.value.node is not None and "jit(" in caught.value.node


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_a_sort_by_any_number_of_keys_is_one_dispatch(keys: int):
    a, b = (RNG.integers(-3, 4, (4, 50)).astype(dtype) for dtype in (np.float32, np.int32))
    c = RNG.standard_normal((4, 50)).astype(np.float32)

    def ordered(*operands: Any) -> Any:
        return jax.lax.sort(operands, num_keys=keys)

    program = fuseline.jax.compile(ordered, a, b, c)
    assert program.model.stats["dispatches"] == 1
    for found, wanted in zip(program(a, b, c), jax.jit(ordered)(a, b, c), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
