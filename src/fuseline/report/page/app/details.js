"use strict";
// What is selected: a dispatch, an op, a source node, an edge, a reason or a group of decisions.

const detailsOf = { dispatch: ofDispatch, op: ofOp, node: ofNode, edge: ofEdge, reason: ofReason, group: ofGroup, flip: (...given) => ofFlip(...given) };

function showDetails() {
  const [kind, name] = partsOf(route.pick);
  const made = route.pick && detailsOf[kind] ? detailsOf[kind](side(), name) : null;
  document.querySelector("main").classList.toggle("alone", made === null);
  const close = el("button", { type: "button", "aria-label": "close", click: () => go({ pick: "" }), style: "float: right" }, "×");
  show(document.getElementById("details"), made === null ? [] : [close, ...made]);
}

function missing(kind, name) {
  return [el("p", {}, `This compile has no ${kind} called ${name}.`)];
}

function ofDispatch(shown, name) {
  const index = indexOf(shown);
  const one = index.dispatchOf.get(name);
  if (!one) return missing("dispatch", name);
  const total = totalTime(shown);
  const roof = roofOf(shown, one);
  const ids = new Set(one.members.map(([id]) => id));
  const outside = [...new Set([...ids].flatMap((id) => index.edgesOf.get(id) ?? []))].filter((edge) => !(ids.has(edge.producer) && ids.has(edge.consumer)));
  const others = shown.classes.find((found) => found.dispatches.includes(name))?.dispatches.filter((other) => other !== name) ?? [];
  return [
    el("h2", {}, one.label),
    facts([
      ["time", `${one.seconds === null ? "not measured" : seconds(one.seconds)}; predicted ${seconds(one.predicted)}`],
      ["share", `${percent(timeOf(one) / total)} of all dispatches`],
      ["roofline", roof ? `${roofText(shown, one)}${roof.seconds > timeOf(one) ? `. ${ABOVE_THE_ROOF}` : ""}` : "peaks of the machine are not known"],
      ["work", `${quantity(one.flops)} operations, ${bytesText(one.read)} read, ${bytesText(one.written)} written`],
      ["root", `${one.root}, loops ${one.loops.join(" x ") || "none"}`],
      ["kernel", `${one.family || "none"}${one.form && one.form !== "full" ? `, ${one.form}` : ""}, ${one.workgroups || "?"} workgroups, ${bytesText(one.codeBytes)} of code, ${bytesText(one.scratch)} of scratch`],
      ["executable", others.length ? el("span", {}, `${one.executable}, shared with `, others.slice(0, 8).flatMap((other) => [link(`dispatch:${other}`, other), " "]), others.length > 8 ? `and ${others.length - 8} more` : "") : one.executable],
    ]),
    ...Object.entries(one.fallback).map(([family, why]) => el("p", {}, `no kernel of its own: ${family} refused: ${why}`)),
    el("h3", {}, "ops"),
    el("ul", {}, one.members.map(([id, role]) => el("li", {}, `${role}: `, link(`op:${id}`, id), " ", nodeLinks(shown.ops[id]?.nodes ?? [])))),
    el("h3", {}, outside.length ? "edges to other dispatches" : "no edge leads to another dispatch"),
    ...edgeList(shown, outside),
    assemblyOf(one),
    irOf(one.nodes),
  ];
}

function nodeLinks(names) {
  return names.flatMap((name, number) => [number ? ", " : "", link(`node:${name}`, name)]);
}

function ofOp(shown, id) {
  const op = shown.ops[id];
  if (!op) return missing("op", id);
  const index = indexOf(shown);
  const home = index.homeOf.get(id);
  return [
    el("h2", {}, id),
    facts([
      ["does", op.idiom ? `${op.kind}, made as a ${op.idiom}` : op.kind], ["loops", op.loops.join(" x ") || "none"],
      ["dispatch", home ? link(`dispatch:${home.name}`, home.label) : "none"], ["source", el("span", {}, nodeLinks(op.nodes))],
    ]),
    el("h3", {}, "edges"), ...edgeList(shown, index.edgesOf.get(id) ?? []), irOf(op.nodes),
  ];
}

function ofNode(shown, name) {
  const node = indexOf(shown).sourceOf.get(name);
  if (!node) return missing("node", name);
  const homes = node.at.map((number) => shown.dispatches[number]);
  const fate = node.host ? `runs on the host: ${node.host}` : homes.length ? null : node.gone ? `is gone: ${node.gone}` : "has no dispatch of its own";
  const ids = Object.entries(shown.ops).filter(([, op]) => op.nodes.includes(name)).map(([id]) => id);
  const edges = [...new Set(ids.flatMap((id) => indexOf(shown).edgesOf.get(id) ?? []))];
  const shapes = homes.map((home) => el("li", {}, link(`dispatch:${home.name}`, home.label), ` (${home.nodes.length > 1 ? `with ${shortNames(home.nodes.filter((other) => other !== name), 4)}` : "alone"})`));
  const quantized = shown.quantization.filter((one) => one.nodes.includes(name));
  return [
    el("h2", {}, name), el("p", {}, node.op), fate ? el("p", {}, `This node ${fate}.`) : null, shapes.length ? el("ul", {}, shapes) : null,
    ...quantized.map((one) => el("p", {}, `stayed: ${one.code}: ${one.detail}`)),
    ids.length ? el("h3", {}, "ops") : null, el("ul", {}, ids.map((id) => el("li", {}, link(`op:${id}`, id)))),
    edges.length ? el("h3", {}, "edges") : null, ...edgeList(shown, edges), irOf([name]),
  ];
}

/** Edges, those that were missed first. */
function edgeList(shown, edges) {
  const rank = { missed: 0, "side-by-side": 1, superseded: 2, fused: 3 };
  const ordered = [...edges].sort((a, b) => rank[a.verdict] - rank[b.verdict]);
  return ordered.slice(0, 60).map((edge) => edgeLines(shown, edge)).concat(ordered.length > 60 ? [el("p", { class: "dim" }, `and ${ordered.length - 60} more: see Decisions`)] : []);
}

function edgeLines(shown, edge) {
  const why = edge.verdict === "fused" ? `by ${edge.rule}` : edge.code;
  const numbers = Object.entries(edge.numbers).map(([key, value]) => `${key} ${quantity(value)}`).join(", ");
  const ends = el("span", {}, link(`op:${edge.producer}`, endName(edge.producer_nodes, edge.producer)), edge.arms ? " beside " : " → ", link(`op:${edge.consumer}`, endName(edge.consumer_nodes, edge.consumer)));
  const reason = edge.verdict === "fused" ? why : link(`reason:${edge.code}`, why);
  return el("div", { class: "decision" }, el("p", {}, el("strong", { class: edge.verdict }, edge.verdict), " ", ends, " ", reason, edge.detail ? `: ${edge.detail}` : "", numbers ? el("span", { class: "dim" }, ` (${numbers})`) : null), adviceOf(edge));
}

function endName(nodes, id) {
  return shortNames(nodes, 2) || id;
}

/** What an edge leads from and to, by the source nodes behind its ops. */
function edgeEnds(edge) {
  return `${endName(edge.producer_nodes, edge.producer)} → ${endName(edge.consumer_nodes, edge.consumer)}`;
}

function adviceOf(edge) {
  const superseded = edge.verdict === "superseded" ? "force the two together in a plan (compile --emit plan, edit force, compile --plan)" : undefined;
  const words = edge.verdict === "fused" ? undefined : superseded ?? report.advice[edge.code];
  return words ? el("p", { class: "advice" }, `to change it: ${words}`, triedBy(edge)) : null;
}

/** What says in a terminal whether the two could share a dispatch, and what that would gain. */
function triedBy(edge) {
  const model = side().model;
  if (edge.arms || !/\.(onnx|mlir)$/.test(model)) return null;
  const quoted = /^[\w./-]+$/.test(model) ? model : `'${model.replaceAll("'", "'\\''")}'`;
  return [el("br"), "to try it: ", el("code", {}, `fuseline whatif ${quoted} --force ${edge.producer} ${edge.consumer}`)];
}

function ofEdge(shown, name) {
  const [producer, consumer] = name.split("|");
  const found = (indexOf(shown).edgesOf.get(producer) ?? []).filter((edge) => edge.consumer === consumer && edge.producer === producer);
  if (!found.length) return missing("edge", name);
  const home = (id) => indexOf(shown).homeOf.get(id);
  const where = [producer, consumer].map((id) => (home(id) ? link(`dispatch:${home(id).name}`, home(id).label) : "no dispatch"));
  const together = home(producer) && home(producer) === home(consumer);
  const words = together ? ["They share ", where[0], "."] : ["They do not share a dispatch: ", where[0], " and ", where[1], "."];
  return [el("h2", {}, edgeEnds(found[0])), el("p", { class: "dim" }, `${producer} → ${consumer}`), el("p", {}, words), ...found.map((edge) => edgeLines(shown, edge)), ...(together ? [] : reasonText(found[0].code))];
}

function reasonText(code) {
  return report.reasons[code] ? [el("h3", {}, `about ${code}`), el("pre", { class: "prose", style: "white-space: pre-wrap" }, report.reasons[code])] : [];
}

function ofReason(shown, code) {
  const groups = shown.groups.map((one, number) => [one, number]).filter(([one]) => one.code === code && one.verdict !== "fused");
  return [
    el("h2", {}, code), report.advice[code] ? el("p", { class: "advice" }, `to change it: ${report.advice[code]}`) : null,
    el("ul", {}, groups.map(([one, number]) => el("li", {}, link(`group:${number}`, `${one.edges.length} x ${one.ends}`)))), ...reasonText(code),
  ];
}

function ofGroup(shown, number) {
  const one = shown.groups[Number(number)];
  if (!one) return missing("group of decisions", number);
  const edges = one.edges.map((edge) => shown.decisions[edge]);
  return [el("h2", {}, `${one.edges.length} x ${one.ends}`), el("p", {}, el("strong", { class: one.verdict }, one.verdict), " ", one.verdict === "fused" ? `by ${one.rule}` : link(`reason:${one.code}`, one.code)), ...edgeList(shown, edges)];
}

/** The ops of source nodes after each phase, on demand. */
function irOf(names) {
  if (!side().hasIr || names.length === 0) return null;
  const body = el("div");
  const number = route.side;
  const open = async (event) => {
    if (!event.target.open || body.childElementCount) return;
    const { texts, nodes } = (await unpack(`ir${number}`)) ?? { texts: [], nodes: {} };
    const phases_ = [...new Set(names.flatMap((name) => Object.keys(nodes[name] ?? {})))];
    const of = (phase) => [...new Set(names.flatMap((name) => nodes[name]?.[phase] ?? []))].map((at) => texts[at]).join("\n");
    show(body, phases_.map((phase) => el("div", {}, el("h3", {}, phase), el("pre", {}, of(phase)))));
  };
  return el("details", { toggle: open, id: "ir" }, el("summary", {}, "IR after each phase"), body);
}

function assemblyOf(dispatch) {
  const known = dispatch.kernels.filter((symbol) => side().assembly.includes(symbol));
  if (known.length === 0) return null;
  const body = el("div");
  const number = route.side;
  const open = async (event) => {
    if (!event.target.open || body.childElementCount) return;
    const text = (await unpack(`assembly${number}`)) ?? {};
    show(body, known.map((symbol) => el("div", {}, el("h3", {}, symbol), el("pre", {}, text[symbol]))));
  };
  return el("details", { toggle: open, id: "assembly" }, el("summary", {}, "assembly"), body);
}
