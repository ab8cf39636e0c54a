"""Functions of a model that onnxruntime cannot inline: it reads their nodes under the operator sets of the model, not
under those that they import."""

from __future__ import annotations

import onnx

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.protos import label_of, nested_nodes, standard_domain


def require_inlinable(proto: onnx.ModelProto) -> None:
    """Raises E0106, naming function and node, for a node that is none under the operator sets of the model."""
    opsets = {standard_domain(item.domain): item.version for item in proto.opset_import}
    for function in proto.functions:
        for index, node in enumerate(nested_nodes(function.node)):
            version = opsets.get(standard_domain(node.domain), 0)
            if _is_wrong(node, version):
                message = (
                    f"function {function.name} has a node that is none of operator set {version}, the model's: "
                    "onnxruntime cannot inline it"
                )
                hint = "export the functions for the operator set of the model"
                raise FuselineError("E0106", message, node=f"{function.name}/{label_of(node, index)}", hint=hint)


def _is_wrong(node: onnx.NodeProto, version: int) -> bool:
    domain = standard_domain(node.domain)
    if not version or not onnx.defs.has(node.op_type, version, domain):
        return False
    schema = onnx.defs.get_schema(node.op_type, version, domain)
    count = len(node.input)
    given = {attribute.name for attribute in node.attribute}
    return not given <= schema.attributes.keys() or not schema.min_input <= count <= schema.max_input
