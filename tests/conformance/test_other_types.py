"""The official node tests with other types than theirs: whatever ONNX allows is compiled and run, or refused with a
code. Nothing else may escape.

Values are not compared: a test's numbers may not fit another type. `test_onnx_nodes.py` and the tests of single
operators do that.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import defs, helper

import fuseline
from fuseline.errors import FuselineError

from .node_cases import NodeCase, node_cases

Array = NDArray[Any]
SHARES = 8
SAMPLED = 80
"""The default run takes every eightieth; `-m slow` takes all."""
TYPES = ("float16", "float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
DTYPES: dict[str, str] = {
    f"tensor({name})": {"float": "float32", "double": "float64"}.get(name, name) for name in TYPES
}


def variants() -> Iterator[tuple[NodeCase, str, str]]:
    """Each operator's first test of a version and number of attributes, with each of its type variables as each type
    that it may be."""
    seen: set[tuple[Any, ...]] = set()
    for name, case in sorted(node_cases().items()):
        nodes = case.model.graph.node
        if (
            len(nodes) != 1
            or not all(isinstance(value, np.ndarray) for value in case.inputs)
            or nodes[0].op_type in ("ImageDecoder", "Cast")
        ):
            continue
        schema = _schema(case)
        for constraint in schema.type_constraints if schema is not None else ():
            for allowed in sorted(set(constraint.allowed_type_strs) & DTYPES.keys()):
                key = (
                    nodes[0].op_type,
                    constraint.type_param_str,
                    allowed,
                    len(nodes[0].attribute),
                    case.model.opset_import[0].version,
                )
                if key not in seen:
                    seen.add(key)
                    yield node_cases()[name], constraint.type_param_str, allowed


def _schema(case: NodeCase) -> defs.OpSchema | None:
    node = case.model.graph.node[0]
    versions = {item.domain: item.version for item in case.model.opset_import}
    try:
        return defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except defs.SchemaError:
        return None


def as_type(case: NodeCase, variable: str, dtype: str) -> tuple[onnx.ModelProto, list[Array]]:
    """The model and its feeds with the inputs of one type variable as `dtype`."""
    schema, model, feeds = _schema(case), copy.deepcopy(case.model), [np.asarray(value) for value in case.inputs]
    assert schema is not None
    names = [value.name for value in model.graph.input]
    for number, name in enumerate(model.graph.node[0].input):
        formal = schema.inputs[min(number, len(schema.inputs) - 1)]
        if formal.type_str == variable and name in names and feeds[names.index(name)].dtype.kind in "fiub":
            at = names.index(name)
            with np.errstate(all="ignore"):
                feeds[at] = feeds[at].astype(dtype)
            model.graph.input[at].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(feeds[at].dtype)
    for value in model.graph.output:
        value.type.Clear()
    return model, feeds


def _run(chosen: Sequence[tuple[NodeCase, str, str]], target: str) -> None:
    for case, variable, allowed in chosen:
        model, feeds = as_type(case, variable, DTYPES[allowed])
        try:
            program = fuseline.compile(model, threads=1, target=target)
            program.run({item.name: feed for item, feed in zip(program.inputs, feeds, strict=True)})
        except FuselineError:
            continue
        except Exception as error:
            error.add_note(f"{case.name}, {variable} = {allowed}")
            raise


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_sample_of_other_types(target: str) -> None:
    """Some of them."""
    _run(list(variants())[::SAMPLED], target)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_all_other_types(target: str, share: int) -> None:
    """All of them."""
    _run(list(variants())[share::SHARES], target)
