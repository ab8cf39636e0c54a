"""What a dispatch region is called, and what it says its members are."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation

from fuseline.dispatch.view import MEMBERS_ATTRIBUTE
from fuseline.ir.text import text_location


def member_ids(region: Operation) -> tuple[str, ...]:
    """The ids of a region's members in the fusion graph that it was formed of; none where it does not say."""
    names = region.attributes.get(MEMBERS_ATTRIBUTE)
    return tuple(name.data for name in names if isinstance(name, StringAttr)) if isinstance(names, ArrayAttr) else ()


def region_name(region: Operation) -> str:
    """How errors call a region: by its last member where it names them, else by its place in the text."""
    ids = member_ids(region)
    return ids[-1] if ids else text_location(region.location) or region.name
