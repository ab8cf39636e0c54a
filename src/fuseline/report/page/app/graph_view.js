"use strict";
// A graph as boxes that fold and unfold, with pan and zoom. dagre lays them out; where there are too many for it, rows do.

const BOX = { width: 190, height: 38 };
const MOST_LAID_OUT = 250;
const openGroups = new Map();

/** A drawing of a tree and edges between its leaves. `key` names it; `title` says what it is. */
function graphOf({ key, title, tree, edges }) {
  if (!openGroups.has(key)) openGroups.set(key, openAtFirst(tree));
  const open = openGroups.get(key);
  revealPicked(tree, open);
  const canvas = draw("g");
  const drawing = draw("svg", { role: "group", "aria-label": title, tabindex: 0 }, arrowHead(key), canvas);
  const view = { x: 0, y: 0, width: 1, height: 1 };
  const nothing = draw("text", { x: 20, y: 30, class: "dim" }, `no ${title}`);
  const count = el("span", { class: "dim", role: "status" });
  function redraw(keep = false) {
    const seen = visible(tree, open);
    const layout = seen.boxes.length > 0 ? laidOut(seen, lifted(edges, seen.boxOf)) : { width: BOX.width * 2, height: BOX.height, boxes: [], clusters: [], edges: [] };
    const focused = focusedIn(canvas);
    show(count, `${seen.boxes.length} boxes, ${layout.edges.length} edges`);
    canvas.replaceChildren(...clusters(layout, toggle), ...lines(layout, key), ...boxes(layout, toggle), ...(seen.boxes.length > 0 ? [] : [nothing]));
    if (!keep) fit(view, layout, drawing);
    mark(canvas);
    focusAgain(canvas, focused);
  }
  function toggle(id) {
    if (open.has(id)) open.delete(id);
    else open.add(id);
    redraw(true);
  }
  function all(groups) {
    open.clear();
    groups.forEach((id) => open.add(id));
    redraw();
  }
  panAndZoom(drawing, view);
  const tools = [
    ["fold", "fold all groups", () => all([tree.id])], ["unfold", "open all groups", () => all(allGroups(tree))],
    ["fit", "fit into the window", () => redraw()], ["+", "zoom in", () => zoom(view, drawing, 0.8)], ["-", "zoom out", () => zoom(view, drawing, 1.25)],
  ].map(([text, label, click]) => el("button", { type: "button", "aria-label": `${label} (${title})`, click }, text));
  const made = el("div", { class: "graph", "data-graph": key }, el("div", { class: "bar-of-tools" }, el("strong", {}, title), tools, count), drawing);
  redraw();
  made.mark = () => { if (revealPicked(tree, open)) redraw(true); mark(canvas); };
  return made;
}

/** What of a drawing has the focus, so that it has it again when all is drawn anew: a box that is opened becomes a cluster, and the other way round. */
function focusedIn(canvas) {
  const element = canvas.contains(document.activeElement) ? document.activeElement.closest("[data-box], [data-cluster], [data-edge]") : null;
  return element && { id: element.dataset.box ?? element.dataset.cluster, edge: element.dataset.edge };
}

function focusAgain(canvas, focused) {
  if (!focused) return;
  const again = [...canvas.querySelectorAll("[data-box], [data-cluster], [data-edge]")].find((one) => (focused.edge ? one.dataset.edge === focused.edge : (one.dataset.box ?? one.dataset.cluster) === focused.id));
  (again?.querySelector("[tabindex]") ?? again)?.focus();
}

/** Open the groups around what is selected; whether that changed anything. */
function revealPicked(tree, open) {
  const before = open.size;
  for (const id of boxesOfPick()) {
    for (const around of pathTo(tree, id) ?? []) {
      if (around !== id) open.add(around);
    }
  }
  return open.size !== before;
}

/** The boxes that what is selected has in either graph; an op only where it was picked itself. */
function boxesOfPick() {
  const [kind, name] = partsOf(route.pick);
  if (kind === "dispatch" || kind === "op") return [route.pick];
  const node = kind === "node" ? indexOf(side()).sourceOf.get(name) : undefined;
  return node === undefined ? [] : [`source:${node.number}`];
}

/** Boxes that have to do with what is selected. */
function relatedPicks() {
  const [kind, name] = partsOf(route.pick);
  const index = indexOf(side());
  const home = kind === "dispatch" ? index.dispatchOf.get(name) : kind === "op" ? index.homeOf.get(name) : undefined;
  const ofDispatch = home ? [`dispatch:${home.name}`, ...home.nodes.map((node) => `node:${node}`)] : [];
  const node = kind === "node" ? index.sourceOf.get(name) : undefined;
  const ofNode = node ? node.at.map((number) => `dispatch:${side().dispatches[number].name}`) : [];
  return new Set([...ofDispatch, ...ofNode]);
}

function mark(canvas) {
  const related = relatedPicks();
  for (const element of canvas.querySelectorAll("[data-pick]")) {
    element.classList.toggle("selected", element.dataset.pick === route.pick);
    element.classList.toggle("related", related.has(element.dataset.pick));
  }
}

// layout ---------------------------------------------------------------------------------------------------------------

function laidOut(seen, edges) {
  return seen.boxes.length > MOST_LAID_OUT ? inRows(seen, edges) : byDagre(seen, edges);
}

function byDagre(seen, edges) {
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 34, edgesep: 8, ranker: seen.boxes.length > 150 ? "longest-path" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  seen.clusters.forEach((one) => graph.setNode(one.id, {}));
  seen.boxes.forEach((one) => graph.setNode(one.id, { ...BOX }));
  for (const one of [...seen.clusters, ...seen.boxes]) if (one.cluster) graph.setParent(one.id, one.cluster);
  edges.forEach((one) => graph.setEdge(one.from, one.to));
  dagre.layout(graph);
  const at = (one) => ({ ...one, ...graph.node(one.id) });
  const { width, height } = graph.graph();
  return { width, height, boxes: seen.boxes.map(at), clusters: seen.clusters.map(at), edges: edges.map((one) => ({ ...one, points: graph.edge(one.from, one.to).points })) };
}

/** Ranks by the longest path, boxes of a rank side by side in the order of the program; clusters are not drawn. */
function inRows(seen, edges) {
  const rank = new Map(seen.boxes.map((one) => [one.id, 0]));
  const after = new Map(seen.boxes.map((one) => [one.id, []]));
  const waiting = new Map(seen.boxes.map((one) => [one.id, 0]));
  for (const { from, to } of edges) { after.get(from).push(to); waiting.set(to, waiting.get(to) + 1); }
  const ready = seen.boxes.filter((one) => waiting.get(one.id) === 0).map((one) => one.id);
  for (let next = 0; next < ready.length; next += 1) {
    for (const to of after.get(ready[next])) {
      rank.set(to, Math.max(rank.get(to), rank.get(ready[next]) + 1));
      waiting.set(to, waiting.get(to) - 1);
      if (waiting.get(to) === 0) ready.push(to);
    }
  }
  const used = new Map();
  const boxes = seen.boxes.map((one) => {
    const row = rank.get(one.id);
    const column = used.get(row) ?? 0;
    used.set(row, column + 1);
    return { ...one, ...BOX, x: 100 + column * (BOX.width + 16), y: 30 + row * (BOX.height + 34) };
  });
  const byId = new Map(boxes.map((one) => [one.id, one]));
  const lines_ = edges.map((one) => ({ ...one, points: between(byId.get(one.from), byId.get(one.to)) }));
  const width = Math.max(...used.values()) * (BOX.width + 16) + 60;
  return { width, height: used.size * (BOX.height + 34) + 40, boxes, clusters: [], edges: lines_ };
}

function between(from, to) {
  return [{ x: from.x, y: from.y + BOX.height / 2 }, { x: to.x, y: to.y - BOX.height / 2 }];
}

// drawing --------------------------------------------------------------------------------------------------------------

function arrowHead(key) {
  const tip = draw("path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" });
  return draw("defs", {}, draw("marker", { id: `tip-${key}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, tip));
}

function boxes(layout, toggle) {
  return layout.boxes.map((one) => {
    const act = () => (one.pick ? go({ pick: one.pick }) : toggle(one.id));
    const open = (event) => { event.preventDefault(); if (one.children) toggle(one.id); };
    const press = (event) => { if (event.key === "Enter") act(); if (event.key === " ") open(event); };
    const hint = one.children ? `${one.label}: ${one.pick ? "double click or space" : "click"} opens it (${one.children.length} inside)` : one.label;
    return draw("g", {
      class: `box ${one.pick ? "" : "group"} ${one.classes ?? ""}`, transform: `translate(${one.x - BOX.width / 2} ${one.y - BOX.height / 2})`, tabindex: 0, role: "button",
      "data-pick": one.pick, "data-box": one.id, "aria-label": `${one.label} ${one.sub ?? ""}`, click: act, dblclick: open, keydown: press,
    }, draw("title", {}, `${hint}\n${one.sub ?? ""}`), draw("rect", { width: BOX.width, height: BOX.height, rx: 5 }),
    draw("text", { x: 8, y: one.sub ? 16 : 23 }, cut(one.label, 24) + (one.children ? ` (${one.children.length})` : "")), one.sub ? draw("text", { x: 8, y: 30, class: "sub" }, cut(one.sub, 31)) : null);
  });
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function clusters(layout, toggle) {
  return layout.clusters.map((one) => draw("g", { class: "cluster", "data-cluster": one.id },
    draw("rect", { x: one.x - one.width / 2, y: one.y - one.height / 2, width: one.width, height: one.height, rx: 6 }),
    draw("text", { x: one.x - one.width / 2 + 5, y: one.y - one.height / 2 + 12, click: () => toggle(one.id), role: "button", tabindex: 0, "aria-expanded": "true", "aria-label": one.label, keydown: (event) => pressed(event, () => toggle(one.id)) }, `▾ ${one.label}`)));
}

/** Edges; one that decisions were made about is a button that says why. */
function lines(layout, key) {
  return layout.edges.map((one) => {
    const decisions = one.edges.map((edge) => edge.decision).filter(Boolean);
    const path = one.points.map((point, number) => `${number === 0 ? "M" : "L"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
    const shapes = [draw("path", { class: "line", d: path, "marker-end": `url(#tip-${key})` }), draw("path", { class: "hit", d: path })];
    const first = decisions.find((decision) => decision.verdict === "missed") ?? decisions[0];
    if (!first) return draw("g", { class: "edge" }, shapes);
    const act = () => go({ pick: edgePick(first) });
    const words = `${edgeEnds(first)}: ${first.verdict}${first.verdict === "fused" ? "" : ` ${first.code}`}${first.detail ? `: ${first.detail}` : ""}${decisions.length > 1 ? ` (and ${decisions.length - 1} more)` : ""}`;
    return draw("g", { class: `edge button ${first.verdict}`, "data-pick": edgePick(first), "data-edge": `${one.from} ${one.to}`, tabindex: 0, role: "button", "aria-label": words, click: act, keydown: (event) => pressed(event, act) },
      draw("title", {}, words), shapes);
  });
}

// pan and zoom ---------------------------------------------------------------------------------------------------------

function fit(view, layout, drawing) {
  Object.assign(view, { x: -10, y: -10, width: layout.width + 20, height: layout.height + 20 });
  const least = 420;  // letters of a tall graph would be too small to read: its top is shown
  if (view.height > 1500) {
    const first = layout.boxes.find((one) => one.pick === route.pick) ?? layout.boxes[0];
    const width = Math.max(Math.min(view.width, 1100), least);
    Object.assign(view, { height: 900, width, x: first.x - width / 2, y: Math.max(first.y - 300, -10) });
  }
  apply(view, drawing);
}

function apply(view, drawing) {
  drawing.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
}

function zoom(view, drawing, factor, at = { x: view.x + view.width / 2, y: view.y + view.height / 2 }) {
  Object.assign(view, { x: at.x - (at.x - view.x) * factor, y: at.y - (at.y - view.y) * factor, width: view.width * factor, height: view.height * factor });
  apply(view, drawing);
}

function panAndZoom(drawing, view) {
  const inDrawing = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
  drawing.addEventListener("wheel", (event) => { event.preventDefault(); zoom(view, drawing, event.deltaY > 0 ? 1.12 : 0.89, inDrawing(event)); }, { passive: false });
  let held = null;
  drawing.addEventListener("pointerdown", (event) => { if (!event.target.closest(".box, .edge, .cluster text")) { held = inDrawing(event); drawing.setPointerCapture(event.pointerId); } });
  drawing.addEventListener("pointermove", (event) => {
    if (!held) return;
    const now = inDrawing(event);
    view.x += held.x - now.x;
    view.y += held.y - now.y;
    apply(view, drawing);
  });
  drawing.addEventListener("pointerup", () => { held = null; });
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.target !== drawing) return;
    if (step) { view.x += step[0] * view.width * 0.1; view.y += step[1] * view.height * 0.1; apply(view, drawing); event.preventDefault(); }
    if (event.key === "+" || event.key === "-") zoom(view, drawing, event.key === "+" ? 0.8 : 1.25);
  });
}

// the tab --------------------------------------------------------------------------------------------------------------

registerView("graph", "Graph", () => {
  const shown = side();
  const graphs = [graphOf({ key: `dispatches-${route.side}`, title: "dispatches", tree: dispatchTree(shown), edges: dispatchEdges(shown) })];
  if (shown.sources.some((node) => node.inputs.length > 0)) {
    graphs.unshift(graphOf({ key: `sources-${route.side}`, title: "the model", tree: sourceTree(shown), edges: sourceEdges(shown) }));
  }
  const words = "Click selects, double click (or space) opens a box, click on a dashed box opens it, drag and wheel move. Orange edges stayed between two dispatches; a click (or Enter on it) says why.";
  return [el("p", { class: "dim" }, words), el("div", { class: graphs.length > 1 ? "graphs" : "" }, graphs)];
});
