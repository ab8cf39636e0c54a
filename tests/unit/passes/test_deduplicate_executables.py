"""Equal executables are one: the calls of all of them launch it, and calls of what is not in the program stay as they
are."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from fuseline.compile_options import CHOICES
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.deduplicate_executables import DeduplicateExecutablesPass
from fuseline.passes.dedup.levels import LEVELS, contains

EXECUTABLE = """flow.executable private @{name} {{
  flow.executable.export public @{name}
  builtin.module {{
    func.func @{name}(%x: tensor<3xf32>) -> tensor<3xf32> attributes {{fuseline.loops = {loops}}} {{
      %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}}
          ins(%x : tensor<3xf32>) outs(%x : tensor<3xf32>) {{
      ^bb0(%a: f32, %o: f32):
        %v = {op} %a : f32
        linalg.yield %v : f32
      }} -> tensor<3xf32>
      func.return %r : tensor<3xf32>
    }}
  }}
}}
"""


def _module(*called: str, loops: tuple[str, ...] = ("unit",) * 3, **executables: str) -> ModuleOp:
    calls = "".join(
        f"%v{i} = flow.dispatch @{name}::@{name}(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"
        for i, name in enumerate(called)
    )
    parts = "".join(
        EXECUTABLE.format(name=name, op=op, loops=text)
        for (name, op), text in zip(executables.items(), loops, strict=False)
    )
    ctx = new_context()
    module = parse_module(f"func.func @main(%x: tensor<3xf32>) {{ {calls} return }}\n{parts}", ctx)
    DeduplicateExecutablesPass().apply(ctx, module)
    return module


def test_calls_of_equal_code_launch_the_first():
    module = _module("b", "a", "c", a="math.exp", b="math.exp", c="math.tanh")
    assert [op.sym_name.data for op in module.ops if isinstance(op, ExecutableOp)] == ["a", "c"]
    assert [(op.executable, op.entry) for op in module.walk() if isinstance(op, DispatchOp)] == [
        ("a", "a"),
        ("a", "a"),
        ("c", "c"),
    ]


def test_a_call_of_what_is_elsewhere_stays():
    module = _module("gone", "b", a="math.exp", b="math.exp")
    assert [(op.executable, op.entry) for op in module.walk() if isinstance(op, DispatchOp)] == [
        ("gone", "gone"),
        ("a", "a"),
    ]


@pytest.mark.parametrize(("loops", "executables"), [(("unit", "unit"), 1), (("unit", "[]"), 2)])
def test_equal_code_whose_loops_are_shared_in_several_ways_is_not_one(loops: tuple[str, ...], executables: int):
    found = [op for op in _module("a", loops=loops, a="math.exp", b="math.exp").ops if isinstance(op, ExecutableOp)]
    assert len(found) == executables


def test_a_level_that_is_none_is_refused_with_those_there_are():
    with pytest.raises(FuselineError) as caught:
        DeduplicateExecutablesPass(level="some").apply(new_context(), ModuleOp([]))
    assert (caught.value.code, caught.value.node) == ("E0304", "deduplicate-executables")
    assert "'some'" in str(caught.value) and all(level in str(caught.value.hint) for level in LEVELS)


def test_a_level_contains_those_before_it_and_the_option_names_them():
    assert CHOICES["dedup"] == LEVELS
    assert [[contains(level, wanted) for wanted in LEVELS] for level in LEVELS] == [
        [before <= i for before in range(len(LEVELS))] for i in range(len(LEVELS))
    ]
