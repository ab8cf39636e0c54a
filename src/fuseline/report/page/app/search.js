"use strict";
// Search over everything that has a name.

const MOST_FOUND = 40;
const NOTHING = "nothing has all of these words; two nodes are found together where an edge joins them, and only such can fuse";

/** What can be found on a side: text, what it is, what is picked. */
function subjects(shown) {
  if (shown.subjects) return shown.subjects;
  shown.subjects = [
    ...shown.dispatches.map((one) => ({ text: one.label, kind: "dispatch", pick: `dispatch:${one.name}` })),
    ...shown.sources.map((one) => ({ text: one.name, kind: one.op || "node", pick: `node:${one.name}` })),
    ...Object.keys(shown.ops).map((id) => ({ text: id, kind: "op", pick: `op:${id}` })),
    ...shown.decisions.map((one) => ({ text: `${namesOf(one.producer_nodes, one.producer)} → ${namesOf(one.consumer_nodes, one.consumer)}`, kind: one.verdict === "fused" ? "fused" : `${one.verdict}: ${one.code}`, pick: edgePick(one) })),
    ...[...new Set(shown.decisions.filter((one) => one.verdict !== "fused").map((one) => one.code))].map((code) => ({ text: code, kind: "reason", pick: `reason:${code}` })),
  ];
  return shown.subjects;
}

function namesOf(nodes, id) {
  return nodes.length ? nodes.join(", ") : id;
}

/** Those whose text has all words; names that begin with the first word come first. */
function find(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [];
  const rank = (one) => (one.text.toLowerCase() === words.toLowerCase() ? 0 : one.text.toLowerCase().startsWith(wanted[0]) ? 1 : 2);
  return subjects(side()).filter((one) => wanted.every((word) => one.text.toLowerCase().includes(word) || one.kind.toLowerCase().includes(word))).sort((a, b) => rank(a) - rank(b)).slice(0, MOST_FOUND);
}

function startSearch() {
  const field = document.getElementById("search");
  const list = document.getElementById("found");
  let results = [];
  let at = 0;
  const close = () => { list.hidden = true; field.setAttribute("aria-expanded", "false"); };
  const choose = (one) => { if (one) { close(); go({ pick: one.pick }); } };
  const refill = () => {
    results = find(field.value);
    at = 0;
    list.hidden = field.value.trim() === "";
    field.setAttribute("aria-expanded", String(!list.hidden));
    paint();
  };
  const paint = () => {
    show(list, results.map((one, number) => el("li", { role: "option", id: `found-${number}`, "aria-selected": String(number === at), mousedown: (event) => { event.preventDefault(); choose(one); } }, one.text, el("small", {}, one.kind))));
    if (results.length === 0) show(list, el("li", { role: "option", "aria-disabled": "true", class: "dim" }, NOTHING));
    field.setAttribute("aria-activedescendant", results.length ? `found-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  field.addEventListener("input", refill);
  field.addEventListener("focus", () => { if (field.value) refill(); });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && results.length) { at = (at + step + results.length) % results.length; paint(); event.preventDefault(); }
    if (event.key === "Enter") choose(results[at]);
    if (event.key === "Escape") close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
  });
}
