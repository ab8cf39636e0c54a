# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# jax is an extra that the checks run without.
"""Small networks of known families, written with jax.numpy: each is a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import jax
from jax import lax
from tests.draws import RNG

Tree = Any
Model = tuple[Callable[..., Any], tuple[Any, ...]]
_NHWC = ("NHWC", "HWIO", "NHWC")


def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Normal numbers in f32, scaled."""
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def dense(inputs: int, outputs: int) -> dict[str, np.ndarray]:
    """A matrix and a bias."""
    return {"w": draw(inputs, outputs, scale=inputs**-0.5), "b": draw(outputs, scale=0.1)}


def applied(p: Tree, x: Any) -> Any:
    """`x @ w + b`."""
    return x @ p["w"] + p["b"]


def filters(size: int, inputs: int, outputs: int) -> np.ndarray:
    """Filters of a convolution, `HWIO`."""
    return draw(size, size, inputs, outputs, scale=(size * size * inputs) ** -0.5)


def convolved(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    """A convolution with padding that keeps the size."""
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=_NHWC, feature_group_count=groups)


def batch_norm(channels: int) -> dict[str, np.ndarray]:
    """What batch norm has in inference."""
    return {
        "scale": draw(channels),
        "bias": draw(channels),
        "mean": draw(channels),
        "var": np.abs(draw(channels)) + 0.5,
    }


def normalized(p: Tree, x: Any) -> Any:
    """Batch norm in inference."""
    return (x - p["mean"]) * lax.rsqrt(p["var"] + 1e-5) * p["scale"] + p["bias"]


def layer_norm(p: Tree, x: Any) -> Any:
    """Layer norm over the last axis."""
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-6) * p["w"] + p["b"]


def resnet() -> Model:
    """Convolutions, batch norm, max pooling, residual sums, a mean over the image."""
    p = {
        "stem": filters(7, 3, 8),
        "bn": [batch_norm(8) for _ in range(3)],
        "a": filters(3, 8, 8),
        "b": filters(3, 8, 16),
        "skip": filters(1, 8, 16),
        "bn2": batch_norm(16),
        "head": dense(16, 10),
    }

    def forward(p: Tree, x: Any) -> Any:
        x = jax.nn.relu(normalized(p["bn"][0], convolved(x, p["stem"], 2)))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        y = jax.nn.relu(normalized(p["bn"][1], convolved(x, p["a"])))
        x = x + y
        y = jax.nn.relu(normalized(p["bn2"], convolved(x, p["b"], 2)))
        x = jax.nn.relu(y + convolved(x, p["skip"], 2))
        pooled = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID") / 4
        logits = applied(p["head"], pooled.mean((1, 2)))
        return jax.nn.log_softmax(logits), jnp.argmax(logits, -1)

    return forward, (p, draw(2, 32, 32, 3))


def mobilenet() -> Model:
    """Depthwise convolutions, hard-swish, squeeze and excitation."""
    p = {
        "stem": filters(3, 3, 8),
        "dw": filters(5, 1, 16),
        "expand": filters(1, 8, 16),
        "project": filters(1, 16, 8),
        "se1": dense(16, 4),
        "se2": dense(4, 16),
        "bn": batch_norm(16),
        "head": dense(8, 5),
    }

    def forward(p: Tree, x: Any) -> Any:
        x = jax.nn.hard_swish(convolved(x, p["stem"], 2))
        y = jax.nn.hard_swish(normalized(p["bn"], convolved(convolved(x, p["expand"]), p["dw"], groups=16)))
        s = jax.nn.relu(applied(p["se1"], y.mean((1, 2))))
        y = y * jax.nn.hard_sigmoid(applied(p["se2"], s))[:, None, None]
        x = x + convolved(y, p["project"])
        return jax.nn.softmax(applied(p["head"], jnp.max(x, (1, 2))))

    return forward, (p, draw(1, 24, 24, 3))


def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Softmax attention over `[batch, heads, length, width]`, with a mask of truth values."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def heads(x: Any, count: int) -> Any:
    """`[batch, length, width]` with heads apart."""
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def bert() -> Model:
    """Embeddings, attention with a mask of lengths, layer norm, gelu by erf."""
    width, count = 16, 4
    p = {
        "words": draw(50, width),
        "places": draw(12, width),
        "norm": {"w": draw(width), "b": draw(width)},
        "layers": [
            {
                **{name: dense(width, width) for name in "qkvo"},
                "n1": {"w": draw(width), "b": draw(width)},
                "n2": {"w": draw(width), "b": draw(width)},
                "up": dense(width, 4 * width),
                "down": dense(4 * width, width),
            }
            for _ in range(2)
        ],
    }

    def forward(p: Tree, tokens: Any, lengths: Any) -> Any:
        x = layer_norm(p["norm"], p["words"][tokens] + p["places"][None, : tokens.shape[1]])
        mask = (jnp.arange(tokens.shape[1])[None] < lengths[:, None])[:, None, None]
        for layer in p["layers"]:
            q, k, v = (heads(applied(layer[name], x), count) for name in "qkv")
            y = attention(q, k, v, mask).transpose(0, 2, 1, 3).reshape(x.shape)
            x = layer_norm(layer["n1"], x + applied(layer["o"], y))
            y = applied(layer["down"], jax.nn.gelu(applied(layer["up"], x), approximate=False))
            x = layer_norm(layer["n2"], x + y)
        return {"last": x, "pooled": jnp.tanh(x[:, 0])}

    tokens = RNG.integers(0, 50, (3, 10)).astype(np.int32)
    return forward, (p, tokens, np.array([10, 4, 7], np.int32))


def rotated(x: Any, position: Any) -> Any:
    """Rotary position embedding over `[batch, heads, length, width]`."""
    half = x.shape[-1] // 2
    angles = position[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def rms_norm(w: Any, x: Any) -> Any:
    """RMS norm."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def llama() -> Model:
    """A step with a cache: RMS norm, rotary embedding, grouped heads, a causal mask, SwiGLU; the cache is written."""
    width, count, shared, length = 16, 4, 2, 12
    p = {
        "words": draw(40, width),
        "layers": [
            {
                "n1": draw(width),
                "n2": draw(width),
                "q": draw(width, width, scale=0.25),
                "k": draw(width, width // 2, scale=0.25),
                "v": draw(width, width // 2, scale=0.25),
                "o": draw(width, width, scale=0.25),
                "gate": draw(width, 32, scale=0.25),
                "up": draw(width, 32, scale=0.25),
                "down": draw(32, width, scale=0.2),
            }
            for _ in range(2)
        ],
        "n": draw(width),
    }

    def forward(p: Tree, tokens: Any, cache: Any, start: Any) -> Any:
        x, kept = p["words"][tokens], []
        at = start + jnp.arange(tokens.shape[1])
        mask = jnp.arange(length)[None] <= at[:, None]
        for layer, (keys, values) in zip(p["layers"], cache, strict=True):
            y = rms_norm(layer["n1"], x)
            q = rotated(heads(y @ layer["q"], count), at)
            k, v = rotated(heads(y @ layer["k"], shared), at), heads(y @ layer["v"], shared)
            keys = lax.dynamic_update_slice(keys, k, (0, 0, start, 0))
            values = lax.dynamic_update_slice(values, v, (0, 0, start, 0))
            kept.append((keys, values))
            y = attention(q, jnp.repeat(keys, count // shared, 1), jnp.repeat(values, count // shared, 1), mask)
            x = x + y.transpose(0, 2, 1, 3).reshape(x.shape) @ layer["o"]
            y = rms_norm(layer["n2"], x)
            x = x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]
        return rms_norm(p["n"], x) @ p["words"].T, kept

    cache = [(draw(1, shared, length, 4), draw(1, shared, length, 4)) for _ in range(2)]
    return forward, (p, RNG.integers(0, 40, (1, 3)).astype(np.int32), cache, np.int32(5))


def lstm(length: int = 40) -> Model:
    """An LSTM by `lax.scan`, forwards and backwards."""
    p = {"x": draw(6, 32, scale=0.4), "h": draw(8, 32, scale=0.3), "b": draw(32, scale=0.1)}

    def forward(p: Tree, x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(row @ p["x"] + h @ p["h"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], 8))
        last, rows = lax.scan(step, (zero, zero), x)
        _, back = lax.scan(step, (zero, zero), x, reverse=True)
        return last, jnp.concatenate([rows, back], -1)

    return forward, (p, draw(length, 2, 6))


def gru() -> Model:
    """A GRU by `lax.scan` over rows and their lengths."""
    p = {"x": draw(5, 21, scale=0.4), "h": draw(7, 21, scale=0.3)}

    def forward(p: Tree, x: Any, lengths: Any) -> Any:
        def step(h: Any, given: Any) -> Any:
            row, t = given
            xr, xz, xn = jnp.split(row @ p["x"], 3, -1)
            hr, hz, hn = jnp.split(h @ p["h"], 3, -1)
            r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
            new = (1 - z) * jnp.tanh(xn + r * hn) + z * h
            h = jnp.where((t < lengths)[:, None], new, h)
            return h, h

        return lax.scan(step, jnp.zeros((3, 7)), (x, jnp.arange(x.shape[0])))

    return forward, (p, draw(30, 3, 5), np.array([30, 4, 17], np.int32))


def group_norm(p: Tree, x: Any, groups: int = 4) -> Any:
    """Group norm over `NHWC`."""
    y = x.reshape(*x.shape[:3], groups, -1)
    mean, var = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
    return ((y - mean) / jnp.sqrt(var + 1e-5)).reshape(x.shape) * p["w"] + p["b"]


def unet() -> Model:
    """A step of diffusion: time embedding, group norm, silu, attention, resizing, concatenation."""
    norm = lambda c: {"w": draw(c), "b": draw(c)}  # noqa: E731
    p = {
        "time": dense(8, 8),
        "in": filters(3, 3, 8),
        "n1": norm(8),
        "c1": filters(3, 8, 8),
        "down": filters(3, 8, 16),
        "n2": norm(16),
        "qkv": dense(16, 48),
        "o": dense(16, 16),
        "up": filters(3, 16, 8),
        "n3": norm(16),
        "out": filters(3, 16, 3),
    }

    def forward(p: Tree, x: Any, t: Any) -> Any:
        waves = t[:, None] * jnp.exp(-jnp.arange(4) * 1.0)
        time = applied(p["time"], jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], -1))
        x = convolved(x, p["in"])
        skip = x + convolved(jax.nn.silu(group_norm(p["n1"], x) + time[:, None, None]), p["c1"])
        x = convolved(skip, p["down"], 2)
        y = group_norm(p["n2"], x)
        flat = y.reshape(y.shape[0], -1, 16)
        q, k, v = (heads(part, 2) for part in jnp.split(applied(p["qkv"], flat), 3, -1))
        y = attention(q, k, v, True).transpose(0, 2, 1, 3).reshape(flat.shape)
        x = x + applied(p["o"], y).reshape(x.shape)
        x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], 16), "nearest")
        x = jnp.concatenate([convolved(x, p["up"]), skip], -1)
        return convolved(jax.nn.silu(group_norm(p["n3"], x)), p["out"])

    return forward, (p, draw(2, 8, 8, 3), np.array([3.0, 40.0], np.float32))


def training_step() -> Model:
    """Gradients of a network with a convolution and pooling, and the parameters behind a step of Adam."""
    p = {"c": filters(3, 1, 4), "d": dense(16, 3)}

    def loss(p: Tree, x: Any, label: Any) -> Any:
        y = lax.reduce_window(jnp.tanh(convolved(x, p["c"])), -jnp.inf, lax.max, (1, 4, 4, 1), (1, 4, 4, 1), "VALID")
        logits = jax.nn.log_softmax(applied(p["d"], y.reshape(x.shape[0], -1)))
        return -jnp.take_along_axis(logits, label[:, None], 1).mean()

    def step(p: Tree, x: Any, label: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(p, x, label)
        moved = jax.tree.map(lambda a, g: a - 0.1 * g / (jnp.sqrt(g * g) + 1e-3), p, slopes)
        return value, slopes, moved

    return step, (p, draw(5, 8, 8, 1), np.array([0, 1, 2, 1, 0], np.int32))


MODELS: dict[str, Callable[[], Model]] = {
    "resnet": resnet,
    "mobilenet": mobilenet,
    "bert": bert,
    "llama": llama,
    "lstm": lstm,
    "gru": gru,
    "unet": unet,
    "training-step": training_step,
}
"""The networks by family."""
