"""Which version of an operator a node means: that of its domain's set, or what other runtimes take where the model does
not say.

The models that runtimes ship their tests with import only the domain they extend, or use an operator before the
standard had it.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import defs

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.protos import standard_domain

_ML = max(schema.since_version for schema in defs.get_all_schemas() if schema.domain == "ai.onnx.ml")
NEWEST: Mapping[str, int] = {"": defs.onnx_opset_version(), "ai.onnx.ml": _ML}
"""The newest sets of the standard that are known here."""

_EARLIER: Mapping[str, int] = {"LayerNormalization": 17, "CastLike": 15}
"""Operators that models have before the standard does: onnxruntime registers LayerNormalization since operator set 1 as
version 17 defines it (its scale may have another type than its input, and the result has that type). CastLike comes
from what we spell out ourselves."""


def operator_sets(proto: onnx.ModelProto, name: str) -> dict[str, int]:
    """Domain to version; standard domains that the model does not import come in their newest version, as onnxruntime
    takes them.

    Raises:
        FuselineError: E0105 for a version that does not exist yet, or that no set has.
    """
    found = {standard_domain(item.domain): item.version for item in proto.opset_import}
    for domain, version in found.items():
        newest = NEWEST.get(domain)
        if newest is not None and not 1 <= version <= newest:
            which = domain or "ai.onnx"
            hint = f"export for operator set {newest} or an earlier one"
            raise FuselineError(
                "E0105", f"operator set {version} of {which}: known are 1 to {newest}", node=name, hint=hint
            )
    return {**NEWEST, **found}


def is_earlier(opsets: Mapping[str, int], domain: str, op_type: str) -> bool:
    """Whether a model has an operator before the standard does."""
    return not domain and opsets.get(domain, 1) < _EARLIER.get(op_type, 0)


def version_of(opsets: Mapping[str, int], domain: str, op_type: str) -> int:
    """The version of the set that a node's operator is read in."""
    version = opsets.get(domain, 1)
    return max(version, _EARLIER.get(op_type, 0)) if not domain else version
