"use strict";
// Two compiles side by side: what moved, which decision did it, and the time of both.

registerView("compare", "Compare", () => {
  const found = report.comparison;
  const titles = report.sides.map((one) => one.title);
  const columns = [{ title: "what", of: (row) => row[0] }, { title: titles[0], of: (row) => String(row[1]) }, { title: titles[1], of: (row) => String(row[2]) }];
  return [
    el("p", { id: "verdict" }, comparisonVerdict()),
    el("h2", {}, "Which decisions did it"), found.flips.length ? flipTable(titles) : el("p", {}, "No decision differs."),
    el("h2", {}, "Dispatches that changed"), ...(found.changed.length ? found.changed.map(changesOf) : [el("p", {}, "None gained or lost ops.")]),
    listOf("only in the first", found.vanished), listOf("only in the second", found.appeared),
    el("h2", {}, "Statistics that differ"), table({ caption: "statistics", rows: found.statistics, columns }),
    el("h2", {}, "Time by dispatch"), timesOf(),
  ];
}, () => report.comparison !== null);

/** Both sides in a line: dispatches and time. */
function comparisonVerdict() {
  const { seconds: [before, after], measured } = report.comparison.total;
  const ratio = before > 0 && after > 0 ? `, ${Number((after / before).toPrecision(3))} of the time` : "";
  const [first, second] = report.sides;
  return `${first.title} → ${second.title}: ${first.dispatches.length} → ${second.dispatches.length} dispatches, ${seconds(before)} → ${seconds(after)} ${measured ? "measured" : "predicted"}${ratio}`;
}

/** Decisions by what they were and are; a row opens the list of edges. */
function flipTable(titles) {
  const rows = report.comparison.flips.map((one, number) => ({ ...one, number }));
  const columns = [
    { title: "edges", number: true, of: (row) => row.edges.length }, { title: "ops", of: (row) => row.ends }, { title: titles[0], of: (row) => row.was }, { title: titles[1], of: (row) => row.now },
  ];
  return table({ caption: "decisions that differ; a click lists their edges", rows, columns, pickOf: (row) => `flip:${row.number}` });
}

function ofFlip(shown, number) {
  const one = report.comparison?.flips[Number(number)];
  if (!one) return missing("change of decisions", number);
  const lines_ = one.edges.slice(0, 30).flatMap((edges) => edges.map((at, side_) => (at < 0 ? null : el("div", {}, el("p", { class: "dim" }, report.sides[side_].title), edgeLines(report.sides[side_], report.sides[side_].decisions[at])))));
  return [el("h2", {}, `${one.edges.length} x ${one.ends}`), el("p", {}, `${one.was} → ${one.now}`), ...lines_, one.edges.length > 30 ? el("p", { class: "dim" }, `and ${one.edges.length - 30} more`) : null];
}

/** Dispatches that gained and lost the same kinds of ops; the first is open where there is only one. */
function changesOf(group) {
  const kinds = [...counted(group.gained).map((words) => `+ ${words}`), ...counted(group.lost).map((words) => `- ${words}`)].join(", ");
  return el("details", { open: group.changes.length === 1 }, el("summary", {}, `${group.changes.length} x ${group.before} → ${group.after}: ${kinds}`), group.changes.map(changeOf));
}

function counted(kinds) {
  const counts = new Map();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => (count > 1 ? `${count} ${kind}` : kind));
}

function changeOf(change) {
  const ops = [...change.gained.map((name) => `+ ${name}`), ...change.lost.map((name) => `- ${name}`)];
  return el("div", { class: "change" }, el("p", {}, `${change.before} → ${change.after}`), el("pre", {}, [...ops, ...change.decisions.map((line_) => `because ${line_}`)].join("\n")));
}

function listOf(title, names) {
  return names.length ? el("details", {}, el("summary", {}, `${names.length} ${title}`), el("ul", {}, names.map((name) => el("li", {}, name)))) : null;
}

/** Dispatches of both sides that compute the same nodes, and those that only one side has. */
function timesOf() {
  const keyOf = (one) => [...one.nodes].sort().join(", ");
  const [first, second] = report.sides.map((shown) => summed(shown, keyOf));
  const rows = [...new Set([...first.keys(), ...second.keys()])].map((key) => ({ key, before: first.get(key) ?? 0, after: second.get(key) ?? 0 }));
  const columns = [
    { title: "source nodes", long: true, of: (row) => row.key, text: (text) => cut(text, 160) }, { title: "first", number: true, of: (row) => row.before, text: seconds }, { title: "second", number: true, of: (row) => row.after, text: seconds },
    { title: "difference", number: true, of: (row) => row.after - row.before, text: seconds },
  ];
  const changed = rows.sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
  return table({ caption: "dispatches by their source nodes, largest difference first", rows: changed, columns, filter: true });
}

function summed(shown, keyOf) {
  const found = new Map();
  for (const one of shown.dispatches) found.set(keyOf(one), (found.get(keyOf(one)) ?? 0) + timeOf(one));
  return found;
}
