# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# jax is an extra that the checks run without.
"""Calls of array functions of JAX, by name: a function and what its arguments are drawn from.

An argument is `f` (floats around 0), `p` (floats above 0), `u` (floats within 0..1), `i` (small integers), `n`
(integers above 0), `b` (truth values) or `k` (positions below 3), with sizes behind it: `f34` has 3 rows of 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

import jax
from jax import lax
from tests.draws import RNG

Call = tuple[Callable[..., Any], str]

_UNARY_FLOATS = (
    "abs sin cos tan tanh sinh cosh arcsinh arctan exp expm1 exp2 floor ceil rint trunc sign square negative cbrt "
    "degrees radians sinc i0 fabs isnan isinf isfinite signbit nan_to_num modf frexp positive"
).split()
_UNARY_ABOVE = "log log2 log10 log1p sqrt reciprocal arccosh".split()
_UNARY_WITHIN = "arcsin arccos arctanh".split()
_BINARY_FLOATS = (
    "add subtract multiply divide maximum minimum arctan2 copysign hypot logaddexp logaddexp2 heaviside fmod mod "
    "floor_divide true_divide fmax fmin less greater_equal equal not_equal nextafter remainder divmod float_power"
).split()
_BINARY_INTEGERS = (
    "add multiply maximum floor_divide mod bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm power less"
).split()
_REDUCTIONS = (
    "sum prod mean var std max min argmax argmin any all median nansum nanmax nanmean ptp count_nonzero cumsum cumprod "
    "sort argsort flip average"
).split()

CALLS: dict[str, Call] = {
    **{name: (getattr(jnp, name), "f34") for name in _UNARY_FLOATS},
    **{name: (getattr(jnp, name), "p34") for name in _UNARY_ABOVE},
    **{name: (getattr(jnp, name), "u34") for name in _UNARY_WITHIN},
    **{name: (getattr(jnp, name), "f34 f34") for name in _BINARY_FLOATS},
    **{f"{name}-int": (getattr(jnp, name), "n34 n34") for name in _BINARY_INTEGERS},
    **{name: (partial(getattr(jnp, name), axis=1), "f35") for name in _REDUCTIONS if name != "flip"},
    **{f"{name}-all": (getattr(jnp, name), "f35") for name in ("sum", "max", "argmax", "std", "any", "flip", "ravel")},
    **{f"{name}-int": (getattr(jnp, name), "i35") for name in ("sum", "mean", "argmin", "sort", "cumsum", "cumprod")},
    "invert": (jnp.invert, "i34"),
    "logical": (lambda a, b: jnp.logical_xor(a, jnp.logical_not(b)), "b34 b34"),
    "where": (jnp.where, "b34 f34 f34"),
    "where-broadcast": (lambda c, a: jnp.where(c[:, None], a, 0), "b3 f34"),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), "f34"),
    "round": (lambda x: jnp.round(x, 1), "f34"),
    "power": (jnp.power, "p34 f34"),
    "power-3": (lambda x: x**3, "f34"),
    "matmul": (jnp.matmul, "f34 f45"),
    "matmul-batch": (jnp.matmul, "f234 f245"),
    "matmul-int": (jnp.matmul, "i34 i45"),
    "dot-vectors": (jnp.dot, "f5 f5"),
    "tensordot": (lambda a, b: jnp.tensordot(a, b, 2), "f234 f345"),
    "einsum": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), "f234 f254"),
    "einsum-trace": (lambda a: jnp.einsum("ii->i", a), "f44"),
    "outer": (jnp.outer, "f3 f4"),
    "inner": (jnp.inner, "f34 f54"),
    "kron": (jnp.kron, "f22 f23"),
    "cross": (jnp.cross, "f43 f43"),
    "trace": (jnp.trace, "f44"),
    "tril": (jnp.tril, "f45"),
    "triu": (lambda x: jnp.triu(x, 1), "f45"),
    "diag": (jnp.diag, "f4"),
    "diagonal": (jnp.diagonal, "f45"),
    "eye": (lambda x: x @ jnp.eye(4), "f34"),
    "linspace": (lambda x: x + jnp.linspace(0, 1, 4), "f34"),
    "arange": (lambda x: x * jnp.arange(4), "f34"),
    "transpose": (lambda x: x.transpose(2, 0, 1), "f234"),
    "moveaxis": (lambda x: jnp.moveaxis(x, 0, -1), "f234"),
    "reshape": (lambda x: x.reshape(4, -1), "f234"),
    "squeeze": (lambda x: x[:, None].squeeze(), "f34"),
    "concatenate": (lambda a, b: jnp.concatenate([a, b, a], 1), "f34 f32"),
    "stack": (lambda a, b: jnp.stack([a, b], -1), "f34 f34"),
    "split": (lambda x: jnp.split(x, [1, 3], 1), "f35"),
    "tile": (lambda x: jnp.tile(x, (2, 3)), "f34"),
    "repeat": (lambda x: jnp.repeat(x, 3, 1), "f34"),
    "roll": (lambda x: jnp.roll(x, 2, 1), "f35"),
    "roll-computed": (lambda x, k: jnp.roll(x, k[0], 1), "f35 k1"),
    "rot90": (jnp.rot90, "f34"),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0), "f34"),
    "pad-edge": (lambda x: jnp.pad(x, 1, mode="edge"), "f34"),
    "pad-reflect": (lambda x: jnp.pad(x, 2, mode="reflect"), "f45"),
    "pad-wrap": (lambda x: jnp.pad(x, 1, mode="wrap"), "f34"),
    "slice-steps": (lambda x: x[::-2, 1::2], "f56"),
    "index-int": (lambda x, k: x[k], "f45 k3"),
    "index-pair": (lambda x, k: x[k, k + 1], "f45 k3"),
    "index-bool-where": (lambda x: jnp.where(x > 0, x, 0).sum(0), "f34"),
    "take": (lambda x, k: jnp.take(x, k, axis=1), "f45 k23"),
    "take-along": (lambda x, k: jnp.take_along_axis(x, k, 1), "f35 k32"),
    "at-set": (lambda x, k: x.at[k].set(1.0), "f45 k2"),
    "at-add": (lambda x, k: x.at[:, k].add(x[:, :3]), "f45 k3"),
    "at-max": (lambda x, k: x.at[k, k].max(0.3), "f45 k3"),
    "at-slice": (lambda x: x.at[1:3, ::2].multiply(2.0), "f45"),
    "at-get-fill": (lambda x, k: x.at[k + 3].get(mode="fill", fill_value=9.0), "f45 k3"),
    "one-hot": (lambda k: jax.nn.one_hot(k, 5), "k23"),
    "searchsorted": (lambda x, v: jnp.searchsorted(jnp.sort(x), v), "f8 f5"),
    "digitize": (lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), "f34"),
    "interp": (lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), "f34"),
    "convolve": (lambda a, b: jnp.convolve(a, b, mode="same"), "f9 f3"),
    "correlate": (jnp.correlate, "f9 f4"),
    "polyval": (jnp.polyval, "f4 f34"),
    "diff": (lambda x: jnp.diff(x, axis=1), "f35"),
    "gradient": (lambda x: jnp.gradient(x, axis=1), "f35"),
    "trapezoid": (jnp.trapezoid, "f35"),
    "histogram": (lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], "f9"),
    "quantile": (lambda x: jnp.quantile(x, 0.3, axis=1), "f35"),
    "percentile": (lambda x: jnp.percentile(x, 70), "f35"),
    "unique-size": (lambda k: jnp.unique(k, size=3, fill_value=0), "k8"),
    "nonzero-size": (lambda b: jnp.nonzero(b, size=4)[0], "b8"),
    "cov": (jnp.cov, "f36"),
    "corrcoef": (jnp.corrcoef, "f36"),
    "norm": (jnp.linalg.norm, "f34"),
    "norm-axis": (lambda x: jnp.linalg.norm(x, ord=1, axis=1), "f34"),
    "det": (jnp.linalg.det, "f33"),
    "inv": (jnp.linalg.inv, "f33"),
    "solve": (jnp.linalg.solve, "f33 f3"),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(3)), "f33"),
    "qr": (lambda x: jnp.abs(jnp.linalg.qr(x)[1]), "f43"),
    "eigh": (lambda x: jnp.linalg.eigh(x + x.T)[0], "f33"),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), "f33"),
    "matrix-power": (lambda x: jnp.linalg.matrix_power(x, 3), "f33"),
    "expm": (lambda x: jax.scipy.linalg.expm(x * 0.1), "f33"),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), "f38"),
    "complex": (lambda x: jnp.abs(x + 1j * x), "f34"),
    "relu": (jax.nn.relu, "f34"),
    "gelu": (jax.nn.gelu, "f34"),
    "gelu-erf": (lambda x: jax.nn.gelu(x, approximate=False), "f34"),
    "silu": (jax.nn.silu, "f34"),
    "softplus": (jax.nn.softplus, "f34"),
    "elu": (jax.nn.elu, "f34"),
    "selu": (jax.nn.selu, "f34"),
    "mish": (jax.nn.mish, "f34"),
    "log-sigmoid": (jax.nn.log_sigmoid, "f34"),
    "hard-tanh": (jax.nn.hard_tanh, "f34"),
    "glu": (jax.nn.glu, "f34"),
    "softmax": (jax.nn.softmax, "f35"),
    "log-softmax": (lambda x: jax.nn.log_softmax(x, 0), "f35"),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), "f35"),
    "standardize": (jax.nn.standardize, "f35"),
    "erf": (jax.scipy.special.erf, "f34"),
    "erfc": (jax.scipy.special.erfc, "f34"),
    "erfinv": (jax.scipy.special.erfinv, "u34"),
    "gammaln": (jax.scipy.special.gammaln, "p34"),
    "digamma": (jax.scipy.special.digamma, "p34"),
    "betainc": (jax.scipy.special.betainc, "p4 p4 u4"),
    "xlogy": (jax.scipy.special.xlogy, "p34 p34"),
    "norm-pdf": (jax.scipy.stats.norm.pdf, "f34"),
    "norm-cdf": (jax.scipy.stats.norm.cdf, "f34"),
    "top-k": (lambda x: lax.top_k(x, 3), "f36"),
    "sort-pairs": (lambda a, k: lax.sort((k, a), num_keys=2), "f9 k9"),
    "sort-down": (lambda x: jnp.sort(x, descending=True), "f36"),
    "approx-max": (lambda x: lax.approx_max_k(x, 2), "f9"),
    "cummax": (lambda x: lax.cummax(x, 1), "f36"),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1, reverse=True), "f36"),
    "associative-scan": (lambda x: lax.associative_scan(jnp.maximum, x), "f9"),
    "scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x), "f93"),
    "fori": (lambda x: lax.fori_loop(0, 30, lambda i, c: c * 0.9 + i, x), "f4"),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 2, c[1] * 0.5), (0, x)), "f4"),
    "while-data": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), "f4"),
    "map": (lambda x: lax.map(lambda r: r.sum(), x), "f74"),
    "cond": (lambda x, k: lax.cond(k[0] > 1, jnp.sin, jnp.cos, x), "f4 k1"),
    "switch": (lambda x, k: lax.switch(k[0], [jnp.sin, jnp.cos, jnp.tanh], x), "f4 k1"),
    "dynamic-slice": (lambda x, k: lax.dynamic_slice(x, (k[0], 1), (2, 3)), "f56 k1"),
    "dynamic-update": (lambda x, k: lax.dynamic_update_slice(x, x[:2, :2], (k[0], k[0])), "f56 k1"),
    "conv": (lambda x, w: lax.conv(x, w, (1, 2), "SAME"), "f2377 f4333"),
    "conv-1d": (lambda x, w: lax.conv_general_dilated(x, w, (2,), [(1, 0)]), "f238 f433"),
    "conv-3d": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "VALID"), "f12444 f32222"),
    "conv-dilated": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), [(1, 0), (0, 2)], rhs_dilation=(2, 1), lhs_dilation=(1, 2)),
        "f1266 f3222",
    ),
    "conv-batch-groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", batch_group_count=2),
        "f4266 f4222",
    ),
    "conv-transpose": (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), "f2553 f3334"),
    "max-pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME"), "f56"),
    "resize-linear": (lambda x: jax.image.resize(x, (8, 9), "linear"), "f45"),
    "resize-nearest": (lambda x: jax.image.resize(x, (8, 9), "nearest"), "f45"),
    "resize-cubic": (lambda x: jax.image.resize(x, (8, 9), "cubic"), "f45"),
    "map-coordinates": (lambda x, c: jax.scipy.ndimage.map_coordinates(x, [c, c], order=1), "f45 p6"),
    "vmap": (jax.vmap(lambda a, b: jnp.sort(a @ b)), "f345 f352"),
    "grad": (jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) ** 2)), "f35"),
    "grad-pool": (
        jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum()),
        "f46",
    ),
    "grad-conv": (jax.grad(lambda w, x: (lax.conv(x, w, (2, 2), "SAME") ** 2).sum()), "f4333 f2377"),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 3)), "f3"),
    "jacobian": (jax.jacfwd(lambda x: jnp.sin(x) * x.sum()), "f4"),
    "segment-sum": (lambda x, k: jax.ops.segment_sum(x, k, 3), "f64 k6"),
    "segment-max": (lambda x, k: jax.ops.segment_max(x, k, 3), "f64 k6"),
    "uniform": (lambda x: x + jax.random.uniform(jax.random.key(1), (3, 4)), "f34"),
    "normal": (lambda x: x + jax.random.normal(jax.random.key(1), (3, 4)), "f34"),
    "bernoulli": (lambda x: jax.random.bernoulli(jax.random.key(1), 0.3, (3, 4)) * x, "f34"),
    "randint": (lambda k: k + jax.random.randint(jax.random.key(1), (4,), 0, 9), "k4"),
    "permutation": (lambda x: jax.random.permutation(jax.random.key(1), x), "f6"),
    "categorical": (lambda x: jax.random.categorical(jax.random.key(1), x), "f35"),
    "dot-attention": (
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        "f2524 f2524 f2524",
    ),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32) & 255, "f34"),
    "bitcast-bytes": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), "f34"),
    "popcount": (lax.population_count, "n34"),
    "clz": (lax.clz, "n34"),
    "reduce-precision": (lambda x: lax.reduce_precision(x, 5, 10), "f34"),
    "int-to-float": (lambda k: k.astype(jnp.float32) / 3, "i34"),
    "float-to-int": (lambda x: (x * 1e3).astype(jnp.int8), "f34"),
    "packbits": (jnp.packbits, "b16"),
    "apply-along": (lambda x: jnp.apply_along_axis(jnp.cumsum, 1, x), "f34"),
    "tri-solve": (lambda a, b: jax.scipy.linalg.solve_triangular(a + 3 * jnp.eye(3), b, lower=True), "f33 f3"),
}
"""Each call by its name."""


def _drawn(spec: str, dtype: Any) -> np.ndarray:
    shape = tuple(int(digit) for digit in spec[1:])
    if spec == "b16":
        shape = (16,)
    kind = spec[0]
    if kind in "fpu":
        x = RNG.standard_normal(shape)
        x = np.abs(x) + 0.1 if kind == "p" else np.clip(np.abs(x) / 3, 0.05, 0.95) if kind == "u" else x
        return x.astype(dtype)
    if kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    low, high = {"i": (-5, 6), "n": (1, 7), "k": (0, 3)}[kind]
    return RNG.integers(low, high, shape).astype(np.int32)


def arguments(spec: str, dtype: Any = "float32") -> list[np.ndarray]:
    """Arguments as a call's letters say, floats in `dtype`."""
    return [_drawn(item, dtype) for item in spec.split()]
