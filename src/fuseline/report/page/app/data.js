"use strict";
// What the page knows, and where the reader is: the route is in the address, so that links and the back button work.

/** The document (see report/page/render.py), once it is unpacked. */
let report = null;

const blobs = new Map();

/** Unpack one blob: JSON, compressed with gzip, in base64. Null where the page has none of that name. */
async function unpack(name) {
  if (!blobs.has(name)) {
    const element = document.getElementById(`blob-${name}`);
    blobs.set(name, element === null ? null : await decoded(element.textContent.trim()));
  }
  return blobs.get(name);
}

async function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Where the reader is: `view` is a tab, `side` one of the compiles, `pick` what is selected (`dispatch:012_pooling`). */
let route = { view: "overview", side: 0, pick: "" };

function hashOf({ view, side, pick }) {
  return new URLSearchParams({ view, side, pick }).toString();
}

function routeOf(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const side = Number(words.get("side") ?? 0);
  return { view: words.get("view") ?? firstView(), side: report.sides[side] ? side : 0, pick: words.get("pick") ?? "" };
}

/** Of two compiles it is what differs that is asked for. */
function firstView() {
  return report.comparison === null ? "overview" : "compare";
}

/** Go somewhere; what is not named stays. */
function go(changes) {
  location.hash = hashOf({ ...route, ...changes });
}

/** `dispatch:a:b` as `["dispatch", "a:b"]`. */
function partsOf(pick) {
  const at = pick.indexOf(":");
  return at < 0 ? ["", ""] : [pick.slice(0, at), pick.slice(at + 1)];
}

/** The compile that is shown. */
function side() {
  return report.sides[route.side];
}

/** What lists of a side are looked up by, made once. */
function indexOf(shown) {
  if (shown.index) return shown.index;
  const dispatchOf = new Map(shown.dispatches.map((one) => [one.name, one]));
  const homeOf = new Map();
  for (const one of shown.dispatches) for (const [id] of one.members) homeOf.set(id, one);
  const edgesOf = new Map();
  shown.decisions.forEach((decision, number) => {
    decision.number = number;
    for (const id of new Set([decision.producer, decision.consumer])) {
      if (!edgesOf.has(id)) edgesOf.set(id, []);
      edgesOf.get(id).push(decision);
    }
  });
  const sourceOf = new Map(shown.sources.map((one, number) => [one.name, { ...one, number }]));
  shown.index = { dispatchOf, homeOf, edgesOf, sourceOf };
  return shown.index;
}

/** Where a decision's edge is picked. */
function edgePick(decision) {
  return `edge:${decision.producer}|${decision.consumer}`;
}
