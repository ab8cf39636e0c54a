"""Arms that are equal up to constants make a class, and a class is cut where a constant costs time as an operand."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir.context import new_context
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.constant_classes import (
    ConstantVariant,
    classes,
    differing,
    sharing_for_free,
    variants_of,
)
from fuseline.targets.target import SharingPrice

ARM = """%e{i} = tensor.empty() : tensor<{size}xf32>
  %r{i} = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x{i} : tensor<{size}xf32>) outs(%e{i} : tensor<{size}xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant {factor} : f32
    %d = arith.constant {term} : f32
    %p = {op} %a, %c : f32
    %v = arith.addf %p, %d : f32
    linalg.yield %v : f32
  }} -> tensor<{size}xf32>
"""


def _executable(*arms: tuple[float, float], size: int = 3, op: str = "arith.mulf") -> ExecutableOp:
    """An arm each of `x * factor + term` over `size` elements."""
    type_, count = f"tensor<{size}xf32>", range(len(arms))
    body = "".join(ARM.format(i=i, size=size, factor=f, term=t, op=op) for i, (f, t) in enumerate(arms))
    arguments, types = ", ".join(f"%x{i}: {type_}" for i in count), ", ".join([type_] * len(arms))
    results = ", ".join(f"%r{i}" for i in count)
    text = f"""flow.executable private @e {{ flow.executable.export public @e
        builtin.module {{ func.func @e({arguments}) -> ({types}) {{ {body} func.return {results} : {types} }} }} }}"""
    (executable,) = parse_module(text, new_context()).ops
    assert isinstance(executable, ExecutableOp)
    return executable


def _numbers(variants: list[ConstantVariant]) -> list[tuple[float, ...]]:
    return [tuple(number.value.data for number in variant.values) for variant in variants]


def test_an_arm_is_a_variant_that_knows_its_place_in_the_executable():
    executable = _executable((2.0, 0.5), (4.0, 0.25))
    variants = list(variants_of(executable))
    assert _numbers(variants) == [(2.0, 0.5), (4.0, 0.25)]
    for variant in variants:
        assert variant.executable is executable
        assert [original.value for original in variant.originals] == list(variant.values)
        assert all(_entry_around(constant) is variant.entry for constant in variant.constants)
        for original in variant.originals:
            assert _entry_around(original) is entry_of(executable)
            assert original.reader.parent_op() is original.member


def _entry_around(constant: BodyConstant) -> object:
    return constant.member.parent_op()


def test_classes_come_in_the_order_of_their_first():
    found = classes([_executable((2.0, 0.5)), _executable((2.0, 0.5), op="arith.subf"), _executable((7.0, 0.25))])
    assert [_numbers(variants) for variants in found] == [[(2.0, 0.5), (7.0, 0.25)], [(2.0, 0.5)]]


@pytest.mark.parametrize(("extents", "sizes"), [(True, [1, 1]), (False, [2])])
def test_extents_tell_classes_apart_where_asked(extents: bool, sizes: list[int]):
    executables = [_executable((2.0, 0.5)), _executable((3.0, 0.5), size=4)]
    assert [len(variants) for variants in classes(executables, extents=extents)] == sizes


@pytest.mark.parametrize(
    ("arms", "numbers"),
    [
        ([(2.0, 0.5)], []),
        ([(2.0, 0.5), (2.0, 0.5)], []),
        ([(2.0, 0.5), (3.0, 0.5)], [0]),
        ([(2.0, 0.5), (2.0, 0.5), (2.0, 0.25)], [1]),
        ([(2.0, 0.5), (3.0, 0.25)], [0, 1]),
    ],
)
def test_what_differs_is_told_by_number(arms: list[tuple[float, float]], numbers: list[int]):
    (variants,) = classes(_executable(arm) for arm in arms)
    assert differing(variants) == numbers


@pytest.mark.parametrize(
    ("dear", "parts"),
    [
        (set[int](), [[(2.0, 0.5), (3.0, 0.5), (2.0, 0.25)]]),
        ({0}, [[(2.0, 0.5), (2.0, 0.25)], [(3.0, 0.5)]]),
        ({1}, [[(2.0, 0.5), (3.0, 0.5)], [(2.0, 0.25)]]),
        ({0, 1}, [[(2.0, 0.5)], [(3.0, 0.5)], [(2.0, 0.25)]]),
    ],
)
def test_a_dear_constant_is_the_same_in_all_of_a_part(dear: set[int], parts: list[list[tuple[float, ...]]]):
    (variants,) = classes([_executable((2.0, 0.5)), _executable((3.0, 0.5)), _executable((2.0, 0.25))])

    def price(entry: FuncOp, constant: BodyConstant) -> SharingPrice | None:
        number = [known.reader for variant in variants for known in variant.constants].index(constant.reader) % 2
        return SharingPrice(1.0, "dear") if number in dear else None

    assert [_numbers(part) for part in sharing_for_free(variants, price)] == parts
