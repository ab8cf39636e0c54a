"use strict";
// The tabs that are lists: dispatches, decisions, source nodes, memory, shared code, quantisation.

function dispatchColumns(shown) {
  const total = totalTime(shown) || 1;
  const roof = (row) => { const found = roofOf(shown, row); return found && timeOf(row) ? found.seconds / timeOf(row) : 0; };
  const measured = shown.dispatches.some((one) => one.seconds !== null);
  return [
    { title: "dispatch", of: (row) => row.label },
    measured ? { title: "measured", number: true, of: (row) => row.seconds ?? 0, text: seconds } : null,
    { title: "predicted", number: true, of: (row) => row.predicted, text: seconds, wide: measured },
    { title: "share", number: true, of: (row) => timeOf(row) / total, text: percent },
    { title: "of the roof", number: true, hint: "the least time that the machine's peaks allow, of the time it takes: 100 % is as fast as can be", of: roof, text: (value) => (value ? percent(value) : "") },
    { title: "root", of: (row) => row.root }, { title: "nodes", long: true, of: (row) => row.nodes.join(", "), cell: (row) => shortNames(row.nodes, 3) }, { title: "family", of: (row) => row.family, wide: true },
    { title: "operations", number: true, of: (row) => row.flops, text: quantity, wide: true }, { title: "bytes", number: true, of: (row) => row.read + row.written, text: quantity, wide: true },
    { title: "bar", of: (row) => timeOf(row) / total, cell: (row) => shareBar(timeOf(row) / Math.max(...shown.dispatches.map(timeOf), 1e-12)), wide: true },
  ].filter(Boolean);
}

registerView("dispatches", "Dispatches", () => {
  const shown = side();
  return [table({ caption: "dispatches in program order", rows: shown.dispatches, columns: dispatchColumns(shown), pickOf: (row) => `dispatch:${row.name}`, filter: true })];
});

registerView("decisions", "Decisions", () => {
  const shown = side();
  const rows = shown.groups.map((one, number) => ({ ...one, number }));
  const nodesOf = (row) => row.edges.slice(0, 40).map((edge) => shown.decisions[edge]).flatMap((edge) => [...edge.producer_nodes, ...edge.consumer_nodes]).join(" ");
  const columns = [
    { title: "verdict", of: (row) => row.verdict, cell: (row) => el("span", { class: row.verdict }, row.verdict) }, { title: "edges", number: true, of: (row) => row.edges.length },
    { title: "ops", of: (row) => row.ends }, { title: "rule", of: (row) => row.rule }, { title: "reason", of: (row) => (row.verdict === "fused" ? "" : row.code) },
    { title: "predicted gain", number: true, of: (row) => row.gain, text: (value) => (value ? seconds(value * 1e-9) : "") },
    { title: "for example", long: true, of: (row) => `${row.detail} ${nodesOf(row)}`, cell: (row) => `${row.detail ? `${row.detail}; ` : ""}${exampleOf(shown, row)}` },
  ];
  return [
    el("p", { class: "dim" }, `${shown.decisions.length} decisions; those that are the same but for where they were made are one row, and a click lists them.`),
    table({ caption: "decisions about edges, by structure", rows, columns, pickOf: (row) => `group:${row.number}`, filter: true }),
  ];
});

function exampleOf(shown, row) {
  const edge = shown.decisions[row.edges[0]];
  return edgeEnds(edge);
}

registerView("nodes", "Source nodes", () => {
  const shown = side();
  const fate = (row) => (row.host ? `host: ${row.host}` : row.at.length ? row.at.map((number) => shown.dispatches[number].name).join(", ") : row.gone ? `gone: ${row.gone}` : "none of its own");
  const columns = [{ title: "node", long: true, of: (row) => row.name }, { title: "operator", of: (row) => row.op }, { title: "where it went", of: fate }];
  return [table({ caption: "nodes of the model", rows: shown.sources, columns, pickOf: (row) => `node:${row.name}`, filter: true })];
}, () => side().sources.length > 0);

registerView("memory", "Memory", () => {
  const shown = side();
  const peak = peakOf(shown);
  const rows = peak.lives.map(([offset, bytes, first, last, writer, scratch]) => ({ offset, bytes, first, last, writer, scratch }));
  const columns = [
    { title: "written by", of: (row) => (row.scratch ? "scratch" : row.writer) }, { title: "bytes", number: true, of: (row) => row.bytes, text: quantity },
    { title: "at", number: true, of: (row) => row.offset, text: quantity }, { title: "from wave", number: true, of: (row) => row.first }, { title: "to wave", number: true, of: (row) => row.last },
  ];
  const constants = Object.entries(shown.memory.constants).map(([name, bytes]) => [`constants, ${name}`, `${bytesText(bytes)}`]);
  return [
    facts([["transients of a run", `${bytesText(shown.memory.transient)}`], ["arena", `${bytesText(shown.memory.arena)}`], ["most at once", `${bytesText(peak.bytes)}, in wave ${peak.wave}`], ...constants]),
    el("h2", {}, "The arena over time"), memoryChart(shown),
    el("h2", {}, `What lies there at the peak (wave ${peak.wave})`), table({ caption: "tensors at the peak", rows, columns, pickOf: (row) => (row.writer && !row.scratch ? `dispatch:${row.writer}` : null), sortBy: { column: 1, down: true } }),
  ];
});

registerView("code", "Shared code", () => {
  const shown = side();
  const columns = [
    { title: "dispatches", number: true, of: (row) => row.dispatches.length }, { title: "bytes", number: true, of: (row) => row.code_bytes, text: quantity },
    { title: "kernels", of: (row) => row.kernels.join(", ") }, { title: "who", long: true, of: (row) => row.dispatches.join(", "), cell: (row) => el("span", {}, row.dispatches.flatMap((name) => [link(`dispatch:${name}`, name), " "])) },
  ];
  const why = [{ title: "first", of: (row) => row.first }, { title: "second", of: (row) => row.second }, { title: "verdict", of: (row) => row.verdict }, { title: "reason", of: (row) => row.code }, { title: "what differs", of: (row) => row.detail }];
  return [
    table({ caption: "kernels and the dispatches that run them", rows: shown.classes, columns, filter: true, sortBy: { column: 0, down: true } }),
    shown.sharing.length ? el("h2", {}, "Dispatches that look alike") : null,
    shown.sharing.length ? table({ caption: "what was decided about them", rows: shown.sharing, columns: why, filter: true }) : null,
  ];
});

registerView("quantization", "Quantisation", () => {
  const columns = [{ title: "nodes", of: (row) => row.nodes.join(", ") }, { title: "reason", of: (row) => row.code }, { title: "detail", of: (row) => row.detail }, { title: "in float because of it", of: (row) => row.readers.join(", ") }];
  return [table({ caption: "quantize and dequantize nodes that stayed", rows: side().quantization, columns, filter: true, pickOf: (row) => `node:${row.nodes[0]}` })];
}, () => side().quantization.length > 0);
