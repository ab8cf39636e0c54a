"""Every `while` of the compiler ends: it has one of the forms below, each of which uses something up, or it goes
through `rounds`, which counts.

    while pending:  ... pending.pop() ...       a worklist: what it adds again it looks up among what it has seen
    while at < end: ... at += step ...          a counter
    while op is not None: ... op = op.parent    a walk along links that form no ring: parents, neighbours, uses,
                                                operands
    while x > 1:    ... x //= 2 ...             a number that is halved

A loop of another form belongs into `for _ in rounds("what it is", most=..)` (`ir/rounds.py`). Those that are right for
a reason that no form says are listed with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "fuseline"

COMPILER = ("analysis", "frontends", "ir", "passes", "targets")
"""What runs during a compile; the runtime's loops wait for threads and work."""

TAKING = {"pop", "popleft", "popitem", "heappop", "remove", "difference_update"}

LINKS = frozenset(
    "parent parent_op parent_block _next_op _prev_op _next_block _next_use first_use first_op owner op src source "
    "value base operands lhs rhs "
    "after following operand_of producer_of get result result_of same owner_of erase".split()
)
"""From an op, block or value to another one that is not behind it again: parents, neighbours, what it is made of."""

REASONS = {
    ("analysis/source_paths.py", "not self.stored(path.value)"): "each step goes to what the value is made of",
    ("analysis/near_softmax.py", "True"): "each step goes to the reader of a value",
    ("analysis/online_softmax.py", "True"): "each step goes to the reader of a value",
    ("passes/layout/sink_concats.py", "pending"): "each step goes to readers of a value, which stand behind it",
    (
        "passes/cleanup/compute_before_slices.py",
        "pending",
    ): "each step goes to readers of a value, which stand behind it",
    ("passes/fusion/rule.py", "path.count(path[-1]) == 1"): "each step names a rule, until one comes again",
    ("targets/cpu/kernel_ir/index_cases.py", "left"): "MOST_CASES cases are looked at, no more",
    (
        "frontends/onnx/ops/forests.py",
        "here.size",
    ): "a level further down each round, in trees of a depth that was found before",
    ("frontends/onnx/ops/forests.py", "levels[-1].size"): "each level holds nodes that no level before has expanded",
    ("frontends/onnx/ops/forests.py", "pending"): "each search is cut into halves, down to single values",
    (
        "frontends/onnx/program.py",
        "self.block.last_op is not None and self.block.last_op is not last",
    ): "each round erases the last op",
    ("frontends/onnx/reshaping.py", "a != b"): "each round takes a dimension of either shape, or returns",
    ("frontends/onnx/weights_in_place.py", "True"): "a number of more than 64 bits is refused",
    ("frontends/stablehlo/ops/loops.py", "True"): "each round writes an op out, up to a number of them",
    (
        "ir/hlo/syntax.py",
        "parser._current_token.kind not in (MLIRTokenKind.L_BRACE, MLIRTokenKind.COLON)",
    ): "an item takes a token at least; without one it returns",
    ("ir/large_constants.py", "start >= 0"): "each search begins behind what the one before found",
    ("ir/resource_section.py", "match is not None"): "each match begins behind the one before",
    ("ir/context.py", "name in self.resources"): "the number in the name grows past those that are taken",
    (
        "ir/polynomial.py",
        "rest",
    ): "long division: the leading monomial falls in the order of monomials, of which there are finitely many below",
    ("targets/iree/target.py", "True"): "each round leaves a dispatch to IREE that no round before has",
    ("passes/cleanup/quantized_operands.py", "True"): "each step goes to what the value is made of",
    ("passes/dispatch/fuse_elementwise_bodies.py", "pending"): "only what an erased op read is looked at again",
    ("passes/dispatch/outline_executables.py", "True"): "the number in the name grows past those that are taken",
    ("passes/dispatch/region_order.py", "ready"): "a unit is ready once: when the last that it waits for is done",
    ("passes/cleanup/dead_code.py", "pending"): "only what reads a removed op is looked at again",
    (
        "passes/layout/rewriting/loops_together.py",
        "waiting",
    ): "an op is looked at again only after a pair of loops was refused",
    ("passes/layout/fold_scale_into_weights.py", "True"): "each step goes to the only reader",
    ("passes/layout/rewriting/interleaved.py", "pending"): "from a reshape to its readers, each of one source",
    (
        "passes/schedule/plan_transients.py",
        "owner[i] != i",
    ): "owners form a tree: one has a lower number than what it owns, or is itself",
    (
        "passes/schedule/read_loops.py",
        "value is not self.carried[number]",
    ): "each step goes to what the value is made of",
    ("targets/cpu/emit/body_emitter.py", "waiting"): "each value that waits is made of the one that is made first",
    ("targets/cpu/families/nests/reducing.py", "len(vectors) > 1"): "half as many vectors each round",
    ("targets/cpu/combinators/lanes.py", "kept[0].type.lanes > 1"): "half as many lanes each round",
    ("targets/cpu/kernel_ir/builder.py", "len(self._sizes) <= i"): "each round appends",
    (
        "targets/cpu/link/workers.py",
        "(data := os.read(self._number, _NUMBER))",
    ): "what was written before is read, then the end",
    ("targets/cpu/link/workers.py", "True"): "a file is read to its end",
}
"""By file and condition: loops that end for a reason which no form says."""


@cache
def loops() -> tuple[tuple[str, ast.While], ...]:
    """Each `while` of the compiler, with its file."""
    return tuple(_loops())


def _loops() -> Iterator[tuple[str, ast.While]]:
    for folder in COMPILER:
        for path in sorted((SOURCE / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "while " in text else ():
                if isinstance(node, ast.While):
                    yield path.relative_to(SOURCE).as_posix(), node


def names(node: ast.AST) -> set[str]:
    """The variables and attributes in an expression, as text."""
    return {
        ast.unparse(inner) for inner in ast.walk(node) if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript)
    }


def is_worklist(loop: ast.While) -> bool:
    """Takes something out of what it tests, and adds to it only what it has not met."""
    tested = names(loop.test)
    taken = any(
        isinstance(call.func, ast.Attribute) and call.func.attr in TAKING and ast.unparse(call.func.value) in tested
        for call in calls(loop)
    )
    taken |= any(isinstance(call.func, ast.Name) and call.func.id in TAKING for call in calls(loop))
    taken |= any(isinstance(node, ast.Delete) for node in ast.walk(loop))
    return taken and (not grows(loop, tested) or looks_up(loop))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def grows(loop: ast.While, tested: set[str]) -> bool:
    """Whether the body adds to what is tested."""
    for node in ast.walk(loop):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add | ast.BitOr)
            and ast.unparse(node.target) in tested
        ):
            return True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"append", "extend", "add", "push", "update"}
        ):
            if ast.unparse(node.func.value) in tested:
                return True
    return False


def looks_up(loop: ast.While) -> bool:
    """Whether the body asks if something is known already."""
    return any(
        isinstance(op, ast.In | ast.NotIn)
        for node in ast.walk(loop)
        if isinstance(node, ast.Compare)
        for op in node.ops
    )


def is_counter(loop: ast.While) -> bool:
    """Steps what it compares by an addition, a shift or a division."""
    tested = names(loop.test)
    compares = any(isinstance(node, ast.Compare) for node in ast.walk(loop.test))
    stepping = (ast.Add, ast.Sub, ast.LShift, ast.Mult) if compares else ()
    changed = [
        node for node in ast.walk(loop) if isinstance(node, ast.AugAssign) and ast.unparse(node.target) in tested
    ]
    steps = [node for node in changed if isinstance(node.op, (ast.FloorDiv, ast.RShift, *stepping))]
    halved = [
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        and any(ast.unparse(target) in tested for target in node.targets)
        and _divides(node.value)
    ]
    return bool(steps or halved)


def _divides(value: ast.AST) -> bool:
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.RShift) for node in ast.walk(value)
    )


def is_walk(loop: ast.While) -> bool:
    """Assigns what it tests from a link of an op or value."""
    tested = names(loop.test)
    assigned = [node for node in ast.walk(loop) if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)]
    return any(tested & _targets(node) and node.value is not None and _links(node.value) for node in assigned)


def _targets(node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {
        ast.unparse(name) for target in targets for name in (target.elts if isinstance(target, ast.Tuple) else [target])
    }


def _links(value: ast.expr) -> bool:
    found = {inner.attr for inner in ast.walk(value) if isinstance(inner, ast.Attribute)}
    found |= {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
    return bool(found & LINKS)


FORMS = (is_worklist, is_counter, is_walk)


def test_every_loop_uses_something_up() -> None:
    assert len(loops()) > 100
    unknown = [
        f"{file}:{loop.lineno}: while {condition}: go through `rounds`"
        for file, loop in loops()
        if not any(form(loop) for form in FORMS) and (file, condition := ast.unparse(loop.test)) not in REASONS
    ]
    assert not unknown, "\n".join(unknown)


def test_no_reason_is_left_over() -> None:
    assert REASONS.keys() <= {(file, ast.unparse(loop.test)) for file, loop in loops()}


ENDLESS = (
    """
while changed:
    changed = simplify(module)
""",
    """
while pending:
    op = pending.pop()
    pending += op.operands
""",
    """
while True:
    grid = settle(staging)
""",
)


@pytest.mark.parametrize("text", ENDLESS)
def test_what_may_go_on_is_seen(text: str) -> None:
    loop = ast.parse(text).body[0]
    assert isinstance(loop, ast.While)
    assert not any(form(loop) for form in FORMS)
