"""All generated calls: operator by operator, version by version, each type of each type variable at least once; and how
answers are compared."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx
from onnx import defs

from tests.conformance.node_calls import NAMED, STRATEGIES, Call, Draw
from tests.one_node import by_onnxruntime, feeds_of, one_node

OLDEST = 7
"""onnxruntime promises operator sets from here on; an older version of an operator is called in this one."""

NEWEST = 25
"""What the tested onnxruntime knows in full."""

DRAWS = 3
"""Random calls of each operator, version and choice of types, at least."""

LEAST = 30
"""Random calls of each operator and version, at least."""


@dataclass(frozen=True)
class Variant:
    """One generated call, by what it is generated from."""

    domain: str
    op_type: str
    opset: int
    since: int
    dtypes: tuple[tuple[str, np.dtype[Any]], ...]
    number: int

    @cached_property
    def call(self) -> Call:
        """The call; the same whenever and wherever it is drawn."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        schema = defs.get_schema(self.op_type, self.since, self.domain)
        drawn = STRATEGIES[self.domain, self.op_type](Draw(rng, schema, self.opset, dict(self.dtypes)))
        return replace(
            drawn, inputs=[np.asarray(value) if isinstance(value, np.generic) else value for value in drawn.inputs]
        )

    @property
    def name(self) -> str:
        """Says all of it."""
        types = ",".join(f"{variable}={dtype.name}" for variable, dtype in self.dtypes)
        return f"{self.domain}{'.' if self.domain else ''}{self.op_type}-{self.opset}[{types}]#{self.number}"

    def model(self, constants: Sequence[int] = (), *, ranks: bool = True) -> onnx.ModelProto:
        """The call as a model; see `one_node`."""
        call = self.call
        return one_node(
            self.op_type,
            call.inputs,
            call.attributes,
            opset=self.opset,
            domain=self.domain,
            outputs=call.outputs,
            constants=constants,
            ranks=ranks,
        )

    def feeds(self, constants: Sequence[int] = ()) -> dict[str, Any]:
        """What to feed that model."""
        return feeds_of(self.call.inputs, constants)


@cache
def variants() -> list[Variant]:
    """Every one, operators in alphabetical order."""
    return [variant for (domain, op_type), _ in sorted(STRATEGIES.items()) for variant in _of_operator(domain, op_type)]


def _of_operator(domain: str, op_type: str) -> Iterator[Variant]:
    for since in _versions(domain, op_type):
        schema = defs.get_schema(op_type, since, domain)
        choices = list(_types(schema))
        for dtypes in choices:
            for number in range(max(DRAWS, -(-LEAST // len(choices)))):
                yield Variant(domain, op_type, max(since, OLDEST) if domain == "" else since, since, dtypes, number)


def _versions(domain: str, op_type: str) -> list[int]:
    """Since when each version holds, of those that an operator set to test has."""
    found = sorted(
        {
            s.since_version
            for s in defs.get_all_schemas_with_history()
            if (s.domain, s.name) == (domain, op_type) and not s.deprecated
        }
    )
    if domain:
        return found
    return [
        v for v, following in zip(found, [*found[1:], NEWEST + 1], strict=True) if v <= NEWEST and following > OLDEST
    ]


def _types(schema: defs.OpSchema) -> Iterator[tuple[tuple[str, np.dtype[Any]], ...]]:
    """Choices of types in which each type variable is each type that it may be, as far as NumPy has it."""
    allowed: Mapping[str, list[np.dtype[Any]]] = {
        constraint.type_param_str: [NAMED[n] for n in NAMED if f"tensor({n})" in constraint.allowed_type_strs]
        for constraint in schema.type_constraints
    }
    several = {variable: dtypes for variable, dtypes in allowed.items() if dtypes}
    for i in range(max([len(dtypes) for dtypes in several.values()], default=1)):
        yield tuple((variable, dtypes[i % len(dtypes)]) for variable, dtypes in several.items())


def by_runtime(variant: Variant) -> list[Any] | None:
    """What onnxruntime answers without its optimisations; None where it has no kernel for the types."""
    try:
        return by_onnxruntime(variant.model(), variant.feeds())
    except Exception as error:  # onnxruntime raises classes of its own, which it makes as it goes
        if "onnxruntime" not in type(error).__module__:
            raise
        return None


# -- comparison --------------------------------------------------------------------------------------------------------

TOLERANCE: Mapping[str, float] = {"float16": 8e-3, "float32": 3e-4, "float64": 3e-4, "bfloat16": 3e-2}
"""Relative, and relative to the largest finite element; onnxruntime computes much of float64 in float32."""


def difference(wanted: Any, found: Any) -> str | None:
    """What is wrong with a value: `missing`, `shape`, `dtype` or `values`; None where it is right."""
    if isinstance(wanted, list | tuple) or isinstance(found, list | tuple):
        return _of_lists(wanted, found)
    expected, value = np.asarray(wanted), np.asarray(found)
    if expected.shape != value.shape:
        return f"shape: {value.shape} for {expected.shape}"
    if _kind(expected) != _kind(value):
        return f"dtype: {value.dtype} for {expected.dtype}"
    if _close(expected, value):
        return None
    by = f" (by {_largest(expected, value)})" if expected.dtype.kind in "iu" else ""
    return f"values{by}: {_sample(value)} for {_sample(expected)}"


def _largest(wanted: Any, found: Any) -> int:
    """The largest difference of two integer arrays."""
    return max(abs(int(w) - int(f)) for w, f in zip(wanted.reshape(-1), found.reshape(-1), strict=True))


def _of_lists(wanted: Any, found: Any) -> str | None:
    if not isinstance(wanted, list | tuple) or not isinstance(found, list | tuple) or len(wanted) != len(found):
        return f"missing: {type(found).__name__} for {type(wanted).__name__}"
    return next((text for w, f in zip(wanted, found, strict=True) if (text := difference(w, f)) is not None), None)


def _kind(x: Any) -> Any:
    return "text" if x.dtype.kind in "OUST" else x.dtype


def _close(wanted: Any, found: Any) -> bool:
    if wanted.dtype.kind in "OUST":
        return bool((wanted.astype(str) == found.astype(str)).all())
    if wanted.dtype.kind in "biu":
        return bool((wanted == found).all())
    finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
    tolerance = TOLERANCE[wanted.dtype.name]
    scale = max(float(finite.max(initial=0)), 1e-3)
    return np.allclose(
        found.astype(np.float64),
        wanted.astype(np.float64),
        rtol=tolerance,
        atol=tolerance * min(scale, 1),
        equal_nan=True,
    )


def _sample(x: Any) -> str:
    return str(x.reshape(-1)[:6].tolist())
