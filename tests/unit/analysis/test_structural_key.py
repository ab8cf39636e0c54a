"""What the keys of ops number: attributes by value, properties by name, whatever their order."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, f32, i32
from xdsl.ir import Attribute

from fuseline.analysis.structural_key import AttributeNumbers


def test_properties_are_told_apart_by_name_and_value_not_by_order() -> None:
    numbers = AttributeNumbers()
    parts: dict[str, Attribute] = {"b": f32, "a": i32}
    assert numbers.of(parts) == numbers.of({"a": i32, "b": f32})
    assert numbers.of(parts) != numbers.of({"a": f32, "b": i32}) != numbers.of({"a": f32, "c": i32})


def test_ignored_properties_do_not_enter() -> None:
    numbers, ignored = AttributeNumbers(), frozenset({"sym_name"})
    one, other = ({"sym_name": StringAttr(name), "kind": f32} for name in ("first", "second"))
    assert numbers.of(one, ignored) == numbers.of(other, ignored) and numbers.of(one) != numbers.of(other)


def test_equal_attributes_have_one_number() -> None:
    numbers = AttributeNumbers()
    assert numbers.number(StringAttr("x")) == numbers.number(StringAttr("x")) != numbers.number(StringAttr("y"))
