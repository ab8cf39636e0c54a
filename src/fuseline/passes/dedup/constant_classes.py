"""Code that is equal up to constants of bodies, and that of it which may be shared at no cost.

What is shared is the code of an arm: a dispatch of several independent parts has a kernel for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.func import FuncOp

from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.analysis.structured import is_generic
from fuseline.dispatch.arm_entries import Arm, split_arms
from fuseline.dispatch.body_constants import BodyConstant, Number, body_constants
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir.fast.direct import body_of, ops_of
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.dedup.loose_key import loose_key
from fuseline.targets.target import SharingPrices


@dataclass(frozen=True, eq=False)
class ConstantVariant:
    """An arm of an executable as one of those that differ in constants: `entry` is its code, `constants` are those of
    that code, `originals` the same in the executable."""

    executable: ExecutableOp
    entry: FuncOp
    constants: Sequence[BodyConstant]
    originals: Sequence[BodyConstant]

    @cached_property
    def values(self) -> tuple[Number, ...]:
        """The constants, in the order that all variants of a class have."""
        return tuple(constant.value for constant in self.constants)


def variants_of(executable: ExecutableOp) -> Iterator[ConstantVariant]:
    """Each arm of an executable."""
    for arm in split_arms(entry_of(executable)):
        constants = body_constants(arm.entry)
        yield ConstantVariant(executable, arm.entry, constants, [_original(arm, constant) for constant in constants])


def _original(arm: Arm, constant: BodyConstant) -> BodyConstant:
    """The constant of the dispatch that one of an arm's own entry was copied from."""
    member = arm.originals.get(constant.member, constant.member)
    if not is_generic(member) or member is constant.member:
        return constant
    number = ops_of(body_of(constant.member)).index(constant.reader)
    return constant._replace(member=member, reader=ops_of(body_of(member))[number])


def classes(executables: Iterable[ExecutableOp], *, extents: bool = True) -> list[list[ConstantVariant]]:
    """The arms of executables by what they are but for constants, in the order of the first of each class. `extents`:
    whether these tell classes apart."""
    numbers, key = AttributeNumbers(), structural_key if extents else loose_key
    found: dict[Hashable, list[ConstantVariant]] = {}
    for variant in (variant for executable in executables for variant in variants_of(executable)):
        erased = {constant.place for constant in variant.constants}
        found.setdefault(key(variant.entry, numbers, erased), []).append(variant)
    return list(found.values())


def differing(variants: Sequence[ConstantVariant]) -> list[int]:
    """The constants that are not the same in all variants, by number."""
    columns = zip(*(variant.values for variant in variants), strict=True)
    return [i for i, values in enumerate(columns) if len(set(values)) > 1]


def sharing_for_free(variants: Sequence[ConstantVariant], price: SharingPrices) -> list[list[ConstantVariant]]:
    """A class cut into those that may share code: a constant that costs time as an operand is the same in all of a
    part."""
    varying = differing(variants) if len(variants) > 1 else []
    classes: dict[Hashable, list[ConstantVariant]] = {}
    for variant in variants:
        kept = [None if price(variant.entry, variant.constants[i]) is None else variant.values[i] for i in varying]
        classes.setdefault(tuple(kept), []).append(variant)
    return list(classes.values())
