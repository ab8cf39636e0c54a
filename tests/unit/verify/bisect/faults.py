"""Faults planted into the compiler by patching it: passes, folds, merges and kernel families that make a program mean
something else. Production code has no hooks for them beyond fuel."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from fuseline.ir.provenance import provenance
from fuseline.passes.cleanup import canonicalize
from fuseline.passes.dispatch import form_dispatch_regions
from fuseline.passes.registry import load_pass
from fuseline.targets.cpu import target as cpu_target


def break_body(op: Operation) -> bool:
    """Another sum, product or difference in the body of an op; whether there was one."""
    for inner in list(op.walk()):
        if isinstance(inner, arith.AddfOp | arith.MulfOp | arith.SubfOp) and not _is_broken(inner):
            made = arith.SubfOp if isinstance(inner, arith.AddfOp) else arith.AddfOp
            new = made(inner.lhs, inner.rhs)
            new.attributes["broken"] = inner.attributes.get("broken", arith.FastMathFlagsAttr("none"))
            block = inner.parent
            assert block is not None
            block.insert_op_before(new, inner)
            inner.result.replace_all_uses_with(new.result)
            block.erase_op(inner)
            return True
    return False


def _is_broken(op: Operation) -> bool:
    return "broken" in op.attributes


def _generics(module: ModuleOp, node: str) -> Iterator[Operation]:
    """The structured ops that came from a source node, and from it alone, and were not broken yet."""
    for op in module.walk():
        if isinstance(op, linalg.ops.GenericOp) and tuple(provenance(op)) == (node,):
            if not any(_is_broken(inner) for inner in op.walk()):
                yield op


@contextmanager
def wrong_pass(name: str, node: str) -> Generator[None]:
    """Pass `name` breaks the first op of `node`."""
    kind = load_pass(name)
    plain: Any = kind.apply

    def apply(self: Any, ctx: Any, op: ModuleOp) -> None:
        plain(self, ctx, op)
        for found in list(_generics(op, node))[:1]:
            break_body(found)

    with mock.patch.object(kind, "apply", apply):
        yield


@contextmanager
def wrong_fold(name: str, node: str) -> Generator[None]:
    """`canonicalize` has a fold called `name` that breaks the op of `node`."""

    def fold(op: Operation, work: Any) -> bool:
        if tuple(provenance(op)) != (node,) or any(_is_broken(inner) for inner in op.walk()):
            return False
        return break_body(op)

    fold.__name__ = name
    plain = canonicalize.folds()
    more = {**plain, linalg.ops.GenericOp: (fold, *plain[linalg.ops.GenericOp])}
    with mock.patch.object(canonicalize, "folds", lambda: more):
        yield


@contextmanager
def wrong_merge(first: str, second: str) -> Generator[None]:
    """Where ops of these two nodes share a dispatch, the second one is broken: a rule that should have refused them."""
    plain: Any = form_dispatch_regions._wrap  # pyright: ignore[reportPrivateUsage]

    def wrap(group: Any, *rest: Any) -> None:
        of = {name: node.op for node in group.members for name in node.nodes}
        if first in of and second in of and of[first] is not of[second]:
            break_body(of[second])
        plain(group, *rest)

    with mock.patch.object(form_dispatch_regions, "_wrap", wrap):
        yield


@contextmanager
def wrong_apart(first: str, second: str) -> Generator[None]:
    """Where the first op of `first` has a dispatch without an op of `second`, it is broken: code that is right only
    together with what follows."""
    plain: Any = form_dispatch_regions._wrap  # pyright: ignore[reportPrivateUsage]

    def wrap(group: Any, *rest: Any) -> None:
        names = {name for node in group.members for name in node.nodes}
        if first in names and second not in names:
            break_body(next(node.op for node in group.members if first in node.nodes))
        plain(group, *rest)

    with mock.patch.object(form_dispatch_regions, "_wrap", wrap):
        yield


@contextmanager
def wrong_family(name: str, change: Callable[[str], str]) -> Generator[None]:
    """The code of kernel family `name` is changed as text; it has a symbol of its own, so that no cache has it."""
    of: dict[int, str] = {}
    built: Any = cpu_target.Built
    plain = cpu_target.print_llvm

    def build(family: Any, plan: Any, kernel: Any, *rest: Any) -> Any:
        of[id(kernel)] = family.name
        return built(family, plan, kernel, *rest)

    def text(kernels: Any, machine: Any) -> str:
        found = plain(kernels, machine)
        return change(found) if of.get(id(kernels[0])) == name else found

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(cpu_target, "Built", build))
        stack.enter_context(mock.patch.object(cpu_target, "print_llvm", text))
        yield
