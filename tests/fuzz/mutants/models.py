"""Changes to an ONNX model that keep it readable: other attributes, operands, types, sizes, operators, versions."""

from __future__ import annotations

import random
from collections.abc import Callable, MutableSequence

import onnx

Change = Callable[[onnx.ModelProto, random.Random], None]

INTS = (0, 1, -1, 2, 3, 7, -2, 100, 2**31, -(2**63), 2**62)
FLOATS = (0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5)


def changed_model(model: onnx.ModelProto, rng: random.Random) -> onnx.ModelProto:
    """One to three changes; a change that finds nothing to change leaves the model as it is."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if changed.graph.node:
            rng.choice(CHANGES)(changed, rng)
    return changed


def _attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    if not attributes:
        return
    attribute = rng.choice(attributes)
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(INTS)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
    elif attribute.type == onnx.AttributeProto.INTS:
        _list(attribute.ints, rng)
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = rng.choice((b"", b"SAME_UPPER", b"nearest", b"\xff", b"linear"))


def _list(numbers: MutableSequence[int], rng: random.Random) -> None:
    kind = rng.randrange(3)
    if kind == 0 and numbers:
        numbers[rng.randrange(len(numbers))] = rng.choice(INTS)
    elif kind == 1 and numbers:
        del numbers[rng.randrange(len(numbers))]
    else:
        numbers.append(rng.choice(INTS))


def _rename_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    nodes = [node for node in model.graph.node if node.attribute]
    if nodes:
        node = rng.choice(nodes)
        kind = rng.randrange(3)
        attribute = rng.choice(list(node.attribute))
        if kind == 0:
            node.attribute.remove(attribute)
        elif kind == 1:
            attribute.name = rng.choice(("axis", "axes", "perm", "to", "x"))
        else:
            node.attribute.append(attribute)


def _operand(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another operand (from anywhere, so cycles too), one more, one fewer, none."""
    nodes = [node for node in model.graph.node if node.input]
    if not nodes:
        return
    node = rng.choice(nodes)
    names = [name for other in model.graph.node for name in (*other.input, *other.output)]
    at, kind = rng.randrange(len(node.input)), rng.randrange(4)
    if kind == 0:
        node.input[at] = rng.choice(names)
    elif kind == 1:
        del node.input[at]
    elif kind == 2:
        node.input.append(rng.choice(names))
    else:
        node.input[at] = rng.choice(("", "nowhere"))


def _operator(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(list(model.graph.node))
    others = "MatMul Conv Gather Reshape Loop If TopK Softmax Einsum Nonsense".split()
    node.op_type = rng.choice([*(other.op_type for other in model.graph.node), *others])


def _node(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(list(model.graph.node))
    kind = rng.randrange(3)
    if kind == 0:
        model.graph.node.remove(node)
    elif kind == 1:
        model.graph.node.append(node)
    else:
        node.output[rng.randrange(len(node.output))] = rng.choice(
            ("", *(name for other in model.graph.node for name in other.input))
        )


def _input(model: onnx.ModelProto, rng: random.Random) -> None:
    values = [*model.graph.input, *model.graph.output]
    value = rng.choice(values)
    tensor = value.type.tensor_type
    kind = rng.randrange(4)
    if kind == 0:
        tensor.elem_type = rng.randrange(25)
    elif kind == 1 and tensor.shape.dim:
        rng.choice(list(tensor.shape.dim)).dim_value = rng.choice(INTS)
    elif kind == 2:
        tensor.shape.dim.add().dim_value = rng.choice(INTS)
    else:
        value.name = rng.choice([other.name for other in values] + ["", "nowhere"])


def _weight(model: onnx.ModelProto, rng: random.Random) -> None:
    if not model.graph.initializer:
        return
    weight = rng.choice(list(model.graph.initializer))
    kind = rng.randrange(4)
    if kind == 0:
        weight.data_type = rng.randrange(25)
    elif kind == 1 and weight.dims:
        weight.dims[rng.randrange(len(weight.dims))] = rng.choice(INTS)
    elif kind == 2:
        weight.raw_data = weight.raw_data[: rng.randrange(len(weight.raw_data) + 1)]
    elif weight.raw_data:
        data = bytearray(weight.raw_data)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        weight.raw_data = bytes(data)


def _version(model: onnx.ModelProto, rng: random.Random) -> None:
    kind = rng.randrange(3)
    if kind == 0:
        model.opset_import[0].version = rng.choice((0, 1, 6, 9, 13, 18, 25, 99, -1))
    elif kind == 1:
        model.ir_version = rng.choice((0, 1, 3, 99))
    else:
        model.opset_import[0].domain = rng.choice(("ai.onnx", "x", "com.microsoft"))


CHANGES: tuple[Change, ...] = (
    _attribute,
    _attribute,
    _rename_attribute,
    _operand,
    _operand,
    _operator,
    _node,
    _input,
    _weight,
    _weight,
    _version,
)
