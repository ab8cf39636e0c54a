"use strict";
// What of a tree is seen while some of its groups are open: boxes, the clusters around them, and edges lifted to them.

const FIRST_BOXES = 90;

/** Groups that are open at first: from the outside in, as long as not too many boxes are seen. Dispatches stay closed. */
function openAtFirst(tree, limit = FIRST_BOXES) {
  const open = new Set([tree.id]);
  let boxes = tree.children.length;
  let level = tree.children;
  while (level.length > 0) {
    const next = [];
    for (const one of level) {
      if (!one.children || one.closed) continue;
      if (boxes + one.children.length - 1 > limit) continue;
      open.add(one.id);
      boxes += one.children.length - 1;
      next.push(...one.children);
    }
    level = next;
  }
  return open;
}

/** Every group's id; with `inside`, dispatches are opened as well. */
function allGroups(tree, inside = false) {
  if (!tree.children || (tree.closed && !inside)) return [];
  return [tree.id, ...tree.children.flatMap((child) => allGroups(child, inside))];
}

/** The groups around a leaf or box, outermost first; null where the tree has none of that id. */
function pathTo(tree, id) {
  if (tree.id === id) return [];
  for (const child of tree.children ?? []) {
    const found = pathTo(child, id);
    if (found !== null) return [tree.id, ...found];
  }
  return null;
}

/** Boxes and clusters in order, and for every leaf the box that stands for it. */
function visible(tree, open) {
  const boxes = [];
  const clusters = [];
  const boxOf = new Map();
  function walk(one, cluster) {
    if (one.children && open.has(one.id)) {
      const inner = one.id === tree.id ? null : one.id;
      if (inner !== null) clusters.push({ ...one, cluster });
      one.children.forEach((child) => walk(child, inner ?? cluster));
      return;
    }
    boxes.push({ ...one, cluster });
    claim(one, one.id);
  }
  function claim(one, box) {
    boxOf.set(one.id, box);
    one.children?.forEach((child) => claim(child, box));
  }
  walk(tree, null);
  return { boxes, clusters, boxOf };
}

/** Edges between boxes, each once, with all that they stand for. */
function lifted(edges, boxOf) {
  const found = new Map();
  for (const edge of edges) {
    const from = boxOf.get(edge.from);
    const to = boxOf.get(edge.to);
    if (from === undefined || to === undefined || from === to) continue;
    const key = `${from}\n${to}`;
    if (!found.has(key)) found.set(key, { from, to, edges: [] });
    found.get(key).edges.push(edge);
  }
  return [...found.values()];
}

/** The edges of the fusion graph; arms that lie side by side have none. */
function dispatchEdges(shown) {
  return shown.decisions.filter((one) => !one.arms).map((one) => ({ from: `op:${one.producer}`, to: `op:${one.consumer}`, decision: one }));
}

function sourceEdges(shown) {
  return shown.sources.flatMap((node, number) => node.inputs.map((from) => ({ from: `source:${from}`, to: `source:${number}` })));
}
