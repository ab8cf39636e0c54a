"""What a region is called: by the last of its members, where it names them."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, UnrealizedConversionCastOp, i64
from xdsl.ir import Attribute

from fuseline.dispatch.region_names import member_ids, region_name
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE


def _region(*names: Attribute) -> UnrealizedConversionCastOp:
    op = UnrealizedConversionCastOp.get([], [])
    op.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr(names)
    return op


def test_by_its_last_member():
    region = _region(StringAttr("contraction.1"), StringAttr("elementwise.2"))
    assert member_ids(region) == ("contraction.1", "elementwise.2") and region_name(region) == "elementwise.2"


def test_by_the_op_where_it_names_none():
    plain = UnrealizedConversionCastOp.get([], [])
    assert member_ids(plain) == member_ids(_region()) == ()
    assert region_name(plain) == region_name(_region()) == plain.name


def test_what_is_no_name_is_passed_over():
    mixed = _region(StringAttr("a"), IntegerAttr(3, i64))
    assert member_ids(mixed) == ("a",) and region_name(mixed) == "a"
    plain = UnrealizedConversionCastOp.get([], [])
    plain.attributes[MEMBERS_ATTRIBUTE] = StringAttr("a")
    assert member_ids(plain) == ()
