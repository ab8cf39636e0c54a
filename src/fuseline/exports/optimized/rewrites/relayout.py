"""Components of a graph between Transposes run on axes in another order, where that leaves less to move.

    conv -> T(0,2,3,1) -> Mul -> Add -> Clip -> T(0,3,1,2) -> conv      =>      conv -> Mul -> Add -> Clip -> conv

A component is operators that hang together and do not care for the order of axes (`layout_rules.py`). For each order
that a Transpose at its border suggests the elements are counted that Transposes at the border would move then; the
component takes the order that moves least, if that is less than now. So nothing moves between two matrix products of an
attention, whose own Transposes other compilers recognize.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, is_standard, operand, rank, reconnect, sizes
from fuseline.exports.optimized.layout_rules import change, movable
from fuseline.exports.optimized.permutation import (
    Perm,
    composed,
    identity,
    inverse,
    moving_cost,
    perm_of,
    reordered,
)
from fuseline.exports.optimized.rewrites.transposes import merge

NAME = "relayout"


@dataclass
class Component:
    """Nodes that take one order of axes."""

    nodes: list[ir.Node] = field(default_factory=list[ir.Node])

    def values(self, editor: Editor) -> list[ir.Value]:
        """The values between and around the nodes, as they are now: turning another component may have replaced
        some."""
        return list(dict.fromkeys(value for node in self.nodes for value in movable(editor, node) or ()))


def apply(editor: Editor) -> bool:
    """Turn components, until none gains; whether there was one."""
    changed = False
    for component in components(editor):
        perm = best(editor, component)
        if perm is not None:
            turn(editor, component, perm)
            editor.summary.did(NAME)
            changed = True
    return changed


def components(editor: Editor) -> list[Component]:
    """The components that some Transpose borders on."""
    leader: dict[ir.Value, ir.Value] = {}

    def find(value: ir.Value) -> ir.Value:
        while leader.setdefault(value, value) is not value:
            leader[value] = leader[leader[value]]
            value = leader[value]
        return value

    members: dict[ir.Node, list[ir.Value]] = {}
    for node in editor.nodes():
        found = movable(editor, node)
        if found:
            members[node] = found
            for value in found[1:]:
                leader[find(value)] = find(found[0])
    grouped: dict[ir.Value, Component] = {}
    for node, values in members.items():
        component = grouped.setdefault(find(values[0]), Component())
        component.nodes.append(node)
    return list(grouped.values())


def best(editor: Editor, component: Component) -> Perm | None:
    """The order that moves less than the present one; None where there is none."""
    candidates = _candidates(editor, component)
    now = _cost(editor, component, None) if candidates else 0
    costs = {perm: _cost(editor, component, perm) for perm in candidates}
    found = min(candidates, key=lambda perm: costs[perm], default=None)
    return found if found is not None and costs[found] < now else None


def _candidates(editor: Editor, component: Component) -> list[Perm]:
    inside, found = set(component.nodes), dict[Perm, None]()
    for value in component.values(editor):
        maker = value.producer()
        perm = perm_of(maker) if maker is not None and _is_transpose(editor, maker) else None
        if perm is not None:
            found[inverse(perm)] = None
        for user in editor.users(value):
            perm = perm_of(user) if user not in inside and _is_transpose(editor, user) else None
            if perm is not None:
                found[perm] = None
    known = {rank(value) for value in component.values(editor)}
    return [perm for perm in found if {len(perm)} == known and not identity(perm)]


def _is_transpose(editor: Editor, node: ir.Node) -> bool:
    return is_standard(node, "Transpose") and node.graph is editor.graph


def _cost(editor: Editor, component: Component, perm: Perm | None) -> int:
    """The elements that Transposes at the border move, where the component has its axes in the order `perm`."""
    inside, total = set(component.nodes), 0
    for value in component.values(editor):
        total += _producer_cost(editor, value, inside, perm) + _user_cost(editor, value, inside, perm)
    return total + sum(_own_cost(editor, node, perm) for node in component.nodes)


def _own_cost(editor: Editor, node: ir.Node, perm: Perm | None) -> int:
    """A node of the component that cannot take the order needs its operand as it was."""
    if perm is None or change(editor, node, perm) is not None:
        return 0
    value = operand(node, 0)
    return 0 if value is None else 2 * moving_cost(value, perm)


def _producer_cost(editor: Editor, value: ir.Value, inside: set[ir.Node], perm: Perm | None) -> int:
    maker = value.producer()
    if maker in inside:
        return 0
    held = perm_of(maker) if maker is not None and _is_transpose(editor, maker) else None
    if held is None:
        return 0 if perm is None else moving_cost(value, perm)
    source = operand(maker, 0) if maker is not None else None
    both = held if perm is None else composed(held, perm)
    return 0 if source is None else moving_cost(source, both)


def _user_cost(editor: Editor, value: ir.Value, inside: set[ir.Node], perm: Perm | None) -> int:
    total, outside = 0, value.is_graph_output()
    for user in editor.users(value):
        if user in inside:
            continue
        held = perm_of(user) if _is_transpose(editor, user) else None
        if held is None:
            outside = True
        else:
            total += _turned_cost(value, held if perm is None else composed(inverse(perm), held), perm)
    return total + (moving_cost(value, perm) if outside and perm is not None else 0)


def _turned_cost(value: ir.Value, both: Perm, perm: Perm | None) -> int:
    """What it costs to bring a value, held in the order `perm`, into one that is `both` away."""
    dims = sizes(value)
    held = dims if dims is None or perm is None else reordered(dims, perm)
    return moving_cost(ir.Value(shape=None if held is None else ir.Shape(list(held))), both)


# -- the change --------------------------------------------------------------------------------------------------------


def turn(editor: Editor, component: Component, perm: Perm) -> None:
    """Let the component hold its values in the order `perm`; Transposes stand at its border."""
    changes = {node: found for node in component.nodes if (found := change(editor, node, perm)) is not None}
    inside = set(changes)
    values = component.values(editor)
    for turn_node in changes.values():
        turn_node()
    made = [
        _leave(editor, value, inside, perm) if value.producer() in inside else _enter(editor, value, inside, perm)
        for value in values
    ]
    for value in made:
        if value is not None:
            _merged(editor, value)


def _merged(editor: Editor, value: ir.Value) -> None:
    """Merge a new Transpose with those around it at once: the next component's costs count what is left."""
    node = value.producer()
    assert node is not None
    for inner in [user for user in editor.users(value) if _is_transpose(editor, user)]:
        merge(editor, inner)
    if node.graph is not None:
        merge(editor, node)


def _enter(editor: Editor, value: ir.Value, inside: set[ir.Node], perm: Perm) -> ir.Value | None:
    """The component reads a Transpose of a value from outside."""
    users = [user for user in editor.users(value) if user in inside]
    if not users:
        return None
    turned = editor.new_behind("Transpose", value, users[0], _turned_sizes(value, perm), {"perm": list(perm)})
    reconnect(users, value, turned)
    return turned


def _leave(editor: Editor, value: ir.Value, inside: set[ir.Node], perm: Perm) -> ir.Value | None:
    """A value of the component is turned in its place; what reads it outside reads a Transpose of it."""
    users = [user for user in editor.users(value) if user not in inside]
    was, maker = sizes(value), value.producer()
    value.shape = None if was is None else ir.Shape(_turned_sizes(value, perm) or [])
    assert maker is not None
    if not users and not value.is_graph_output():
        return None
    back = editor.new_behind("Transpose", value, maker, was, {"perm": list(inverse(perm))})
    reconnect(users, value, back)
    editor.hand_over_output(value, back)
    return back


def _turned_sizes(value: ir.Value, perm: Perm) -> list[int | str | None] | None:
    dims = sizes(value)
    return None if dims is None else reordered(dims, perm)
