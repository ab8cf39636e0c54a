"use strict";
// Trees over long lists: dispatches by repeated layers, source nodes by the scopes of their names.
// A tree is {id, label, children} or a leaf {id, label, sub, pick, classes}.

/** Dispatches in order; layers that repeat are groups (`12 x 7 dispatches`, in it `layer 3 of 12`). */
function dispatchTree(shown) {
  const leaves = shown.dispatches.map((one) => dispatchBox(shown, one));
  const children = [];
  let at = 0;
  for (const [start, period, count] of shown.layers) {
    children.push(...leaves.slice(at, start));
    const layers = Array.from({ length: count }, (_, number) => {
      const first = start + number * period;
      return group(`layer:${first}`, `layer ${number + 1} of ${count}`, leaves.slice(first, first + period));
    });
    const single = period === 1;
    children.push(group(`repeat:${start}`, `${count} x ${period} ${period === 1 ? "dispatch" : "dispatches"}`, single ? layers.flatMap((layer) => layer.children) : layers));
    at = start + period * count;
  }
  children.push(...leaves.slice(at));
  return group("all", "all dispatches", children);
}

/** A dispatch opens into its ops. */
function dispatchBox(shown, one) {
  const ops = one.members.map(([id, role]) => ({
    id: `op:${id}`, label: shown.ops[id]?.kind ?? id, sub: shortNames(shown.ops[id]?.nodes ?? [], 2) || role, pick: `op:${id}`, classes: role,
  }));
  const time = one.seconds === null ? "" : `, ${seconds(one.seconds)}`;
  return { id: `dispatch:${one.name}`, label: one.name, sub: `${shortNames(one.nodes, 2)}${time}`, pick: `dispatch:${one.name}`, children: ops, closed: true };
}

function shortNames(names, limit) {
  const short = names.slice(0, limit).map((name) => (name.length > 26 ? `…${name.slice(-25)}` : name));
  return short.join(", ") + (names.length > limit ? `, +${names.length - limit}` : "");
}

function group(id, label, children) {
  return { id, label, children };
}

/** Source nodes by scope: `/encoder/layer.0/Add` lies in `encoder`, in `layer.0`. */
function sourceTree(shown) {
  const root = group("all", "the model", []);
  const groups = new Map([["", root]]);
  shown.sources.forEach((node, number) => {
    const scopes = scopesOf(node.name);
    const parent = scopes.reduce((above, scope, depth) => {
      const path = scopes.slice(0, depth + 1).join("/");
      if (!groups.has(path)) {
        groups.set(path, group(`scope:${path}`, scope, []));
        above.children.push(groups.get(path));
      }
      return groups.get(path);
    }, root);
    parent.children.push(sourceBox(node, number));
  });
  return simplified(root);
}

function scopesOf(name) {
  const words = name.split("/").filter((word) => word !== "");
  return words.slice(0, -1);
}

function sourceBox(node, number) {
  const classes = node.host ? "host" : node.gone ? "gone" : "";
  const words = node.name.split("/").filter((word) => word !== "");
  const sub = words[words.length - 1] === node.op ? words.slice(-2).join("/") : words[words.length - 1] ?? "";
  return { id: `source:${number}`, label: node.op || sub, sub: node.op ? sub : "", pick: `node:${node.name}`, classes };
}

/** A group of one child is that child. */
function simplified(tree) {
  if (!tree.children) return tree;
  const children = tree.children.map(simplified);
  return children.length === 1 && tree.id !== "all" ? children[0] : { ...tree, children };
}
