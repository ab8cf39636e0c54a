# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# jax is an extra that the checks run without.
"""Networks written with jax.numpy give what jitted JAX gives, in the same trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax", reason="needs the extra jax: pip install 'fuseline[jax]'")

import fuseline.jax  # noqa: E402
from tests.draws import RNG  # noqa: E402
from tests.jax.models import MODELS, Model, bert, lstm  # noqa: E402

pytestmark = pytest.mark.jax


def _agree(found: Any, wanted: Any, tolerance: float = 2e-4) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for got, expected in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("family", sorted(MODELS))
def test_a_network_gives_what_jitted_jax_gives(family: str):
    function, arguments = MODELS[family]()
    compiled = fuseline.jax.compile(function, *arguments)
    _agree(compiled(*arguments), jax.jit(function)(*arguments))
    assert compiled.model.record.host_ops == []


@pytest.mark.parametrize("family", ["resnet", "bert", "llama", "unet"])
def test_weights_that_a_function_closes_over_are_constants(family: str):
    function, (parameters, *arguments) = MODELS[family]()
    parameters = jax.tree.map(jax.numpy.asarray, parameters)

    def closed(*given: Any) -> Any:
        return function(parameters, *given)

    compiled = fuseline.jax.compile(closed, *arguments)
    _agree(compiled(*arguments), jax.jit(closed)(*arguments))
    assert len(compiled.model.inputs) == len(jax.tree.leaves(arguments))


def test_a_scan_is_a_loop_whose_rows_are_not_copied():
    function, arguments = lstm(100)
    compiled = fuseline.jax.compile(function, *arguments)
    assert any("while" in node for node in compiled.model.record.source_nodes)
    _agree(compiled(*arguments), jax.jit(function)(*arguments))


def _symbolic(model: Model, *specs: str) -> tuple[Any, list[Any]]:
    from jax import export

    function, (parameters, *arguments) = model
    parameters = jax.tree.map(jax.numpy.asarray, parameters)
    scope = export.SymbolicScope()
    given = [
        jax.ShapeDtypeStruct(export.symbolic_shape(spec, scope=scope), argument.dtype)
        for spec, argument in zip(specs, arguments, strict=True)
    ]

    def closed(*inner: Any) -> Any:
        return function(parameters, *inner)

    return closed, given


def test_a_batch_that_the_run_tells():
    closed, given = _symbolic(bert(), "b, 10", "b")
    compiled = fuseline.jax.compile(closed, *given)
    for batch in (1, 4):
        tokens = RNG.integers(0, 50, (batch, 10)).astype(np.int32)
        lengths = RNG.integers(1, 11, batch).astype(np.int32)
        _agree(compiled(tokens, lengths), jax.jit(closed)(tokens, lengths))


def test_names_are_those_of_the_source():
    def scaled(image: Any, weights: Any) -> Any:
        return jax.nn.relu(image @ weights)

    x, w = RNG.standard_normal((2, 3, 3)).astype(np.float32)
    compiled = fuseline.jax.compile(scaled, x, w)
    assert [item.name for item in compiled.model.inputs] == ["image", "weights"]
    assert any(node.endswith("dot_general") for node in compiled.model.record.source_nodes)


def test_numbers_keys_and_doubles():
    def function(x: Any, count: int, key: Any) -> Any:
        return x * count + jax.random.uniform(key, x.shape)

    x, key = RNG.standard_normal(5).astype(np.float32), jax.random.key(3)
    compiled = fuseline.jax.compile(function, x, 3, key)
    _agree(compiled(x, 4, key), jax.jit(function)(x, 4, key))
    with jax.enable_x64(True):
        wide = x.astype(np.float64)
        double = fuseline.jax.compile(lambda a: (a / 3, jax.numpy.arange(3)), wide)
        _agree(double(wide), jax.jit(lambda a: (a / 3, jax.numpy.arange(3)))(wide), 1e-12)


def test_a_tree_of_another_structure_is_refused():
    compiled = fuseline.jax.compile(lambda p: p["a"] + 1, {"a": np.float32(1)})
    with pytest.raises(fuseline.FuselineError, match="E0501.*another|compiled for"):
        compiled({"b": np.float32(1)})


def test_what_the_function_raises_passes_through():
    with pytest.raises(TypeError):
        fuseline.jax.compile(lambda a, b: a @ b, np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))


@pytest.mark.parametrize("sizes", [(200, 210), (15, 10), (3, 2)])
def test_constants_of_each_type(sizes: tuple[int, int]):
    mask = RNG.integers(0, 2, sizes).astype(bool)
    bytes_ = RNG.integers(0, 256, sizes).astype(np.uint8)
    numbers = RNG.standard_normal(sizes).astype(np.float16)

    def function(x: Any) -> Any:
        return jax.numpy.where(mask, x, 0), bytes_ + jax.numpy.uint8(3), numbers * jax.numpy.float16(2)

    x = RNG.standard_normal(sizes).astype(np.float32)
    _agree(fuseline.jax.compile(function, x)(x), jax.jit(function)(x), 1e-6)
    _agree(fuseline.jax.compile(function, x)(x.astype(np.float64)), jax.jit(function)(x), 1e-6)
