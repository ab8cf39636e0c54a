"use strict";
// The first tab: what it is, what costs most, why edges were missed.

registerView("overview", "Overview", () => {
  const shown = side();
  const measured = shown.dispatches.some((one) => one.seconds !== null);
  const missed = Object.entries(shown.edges.missed);
  const cards = [
    ["dispatches", shown.dispatches.length], [measured ? "measured" : "predicted", seconds(shown.seconds || totalTime(shown))], ["edges fused", shown.edges.fused],
    ["missed", missed.reduce((sum, [, count]) => sum + count, 0)], ["transients", `${bytesText(shown.memory.transient)}`], ["host ops", shown.hosts.length],
  ];
  return [
    el("p", {}, `${shown.model || shown.title}: target ${shown.target}, ${shown.threads} threads, fusion ${shown.fusion || "?"}, dedup ${shown.dedup || "?"}; fuseline ${report.version}`),
    el("div", { class: "cards" }, cards.map(([name, value]) => el("div", {}, el("b", {}, String(value)), name))),
    ...shown.warnings.map((words) => el("p", { class: "missed" }, words)),
    answers(shown),
    el("h2", {}, measured ? "What takes most time" : "What is predicted to take most time (--measure measures)"), costliest(shown), shown.peaks ? el("p", { class: "dim" }, roofWords(shown)) : null,
    el("h2", {}, "Roofline"), rooflineChart(shown),
    el("div", { class: "columns" }, reasons(shown, missed), phases(shown), statistics(shown)),
  ];
}, () => true);

function costliest(shown) {
  const rows = [...shown.dispatches].sort((a, b) => timeOf(b) - timeOf(a)).slice(0, 10);
  return table({ caption: "the ten dispatches that cost most", rows, columns: dispatchColumns(shown).filter((column) => !column.wide), pickOf: (row) => `dispatch:${row.name}`, filter: false });
}

function reasons(shown, missed) {
  const rows = missed.map(([code, count]) => ({ code, count, gain: shown.groups.filter((one) => one.code === code).reduce((sum, one) => sum + one.gain, 0) }));
  const columns = [
    { title: "reason", of: (row) => row.code, cell: (row) => link(`reason:${row.code}`, row.code) }, { title: "edges", number: true, of: (row) => row.count },
    { title: "to change it", of: (row) => report.advice[row.code] ?? "" },
  ];
  const made = rows.length ? table({ caption: "edges by reason", rows, columns, pickOf: (row) => `reason:${row.code}` }) : el("p", {}, "every candidate was fused");
  return el("section", {}, el("h2", {}, "Why not fused"), made);
}

function phases(shown) {
  const rows = Object.entries(shown.phases);
  const most = Math.max(...rows.map(([, time]) => time), 1e-9);
  const lines_ = rows.map(([name, time]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, seconds(time)), el("td", {}, shareBar(time / most))));
  return el("section", {}, el("h2", {}, "The compile"), el("table", {}, el("caption", {}, "seconds by phase"), el("tbody", {}, lines_)));
}

function statistics(shown) {
  return el("section", {}, el("h2", {}, "Statistics"), facts(shown.statistics.map(([name, value]) => [name, String(value)])));
}
