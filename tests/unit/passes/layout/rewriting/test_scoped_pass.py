"""A pass that is a rewrite of one function: asked of each that has a body, with what vanished on record."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.structured import is_generic
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

PLAIN = "affine_map<(i) -> (i)>"
COPY = f"""%y = linalg.generic {{indexing_maps = [{PLAIN}, {PLAIN}], iterator_types = ["parallel"]}}
    ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }} -> tensor<4xf32>"""


def _function(name: str, node: str) -> str:
    return f"""func.func @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %e = tensor.empty() : tensor<4xf32>
      {COPY} loc("{node}")
      return %y : tensor<4xf32>
    }}\n"""


TEXT = _function("main", "first") + "func.func private @outside(tensor<4xf32>)\n" + _function("other", "second")


@dataclass(frozen=True)
class Forget(ScopedPass):
    """Replaces copies by what they copy, in functions of these names."""

    name = "forget"
    names: tuple[str, ...] = ()
    seen: list[str] = field(default_factory=list[str])

    def rewrite(self, scope: Scope) -> None:
        name = scope.function.sym_name.data
        self.seen.append(name)
        for op in list(scope.block.ops):
            if is_generic(op) and name in self.names:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.detach()
                op.erase()


def _ran(step: Forget) -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    module = parse_module(TEXT, ctx)
    step.apply(ctx, module)
    module.verify()
    return module, ctx


def test_every_function_with_a_body_is_rewritten_in_order():
    step = Forget()
    module, ctx = _ran(step)
    assert step.seen == ["main", "other"] and ctx.records.eliminated == {}
    assert module.is_structurally_equivalent(parse_module(TEXT, new_context()))


def test_nodes_that_vanish_are_recorded_with_the_pass():
    module, ctx = _ran(Forget(names=("other",)))
    assert ctx.records.eliminated == {"second": "forget"}
    assert sum(is_generic(op) for op in module.walk()) == 1
    assert _ran(Forget(names=("main", "other")))[1].records.eliminated == {"first": "forget", "second": "forget"}
