"use strict";
// The first lines of the page: what is asked first, each with its answer and a link to the rest of it.

function answers(shown) {
  const lines_ = [["What changed?", changedAnswer()], ["Which dispatch costs most?", costAnswer(shown)], ["Why did two ops not fuse?", missedAnswer(shown)], ["Where is the peak of memory?", peakAnswer(shown)]];
  return el("dl", { id: "answers" }, lines_.filter(([, answer]) => answer !== null).flatMap(([question, answer]) => [el("dt", {}, question), el("dd", {}, answer)]));
}

function changedAnswer() {
  return report.comparison === null ? null : [comparisonVerdict(), ". ", viewLink("compare", "What moved, and which decision did it")];
}

function costAnswer(shown) {
  if (shown.dispatches.length === 0) return null;
  const most = shown.dispatches.reduce((best, one) => (timeOf(one) > timeOf(best) ? one : best));
  const kind = most.seconds === null ? "predicted" : "measured";
  const roof = roofText(shown, most);
  return [link(`dispatch:${most.name}`, most.label), `: ${seconds(timeOf(most))} ${kind}, ${percent(timeOf(most) / (totalTime(shown) || 1))} of all dispatches${roof ? `, ${roof}` : ""}. `, viewLink("dispatches", "All dispatches")];
}

function missedAnswer(shown) {
  const missed = Object.entries(shown.edges.missed).sort((a, b) => b[1] - a[1]);
  if (missed.length === 0) return "Every candidate was fused.";
  const reasons_ = missed.slice(0, 4).flatMap(([code, count], number) => [number ? ", " : "", `${count} x `, link(`reason:${code}`, code)]);
  return [...reasons_, missed.length > 4 ? " and others" : "", ". Of two ops: type both names into the search above. ", viewLink("decisions", "All decisions")];
}

function peakAnswer(shown) {
  const peak = peakOf(shown);
  if (peak.lives.length === 0) return null;
  const [, bytes, , , writer, scratch] = peak.lives.reduce((best, one) => (one[1] > best[1] ? one : best));
  const owner = scratch || !writer ? "scratch" : link(`dispatch:${writer}`, writer);
  return [`${bytesText(peak.bytes)} in wave ${peak.wave}; the largest part, ${bytesText(bytes)}, is ${scratch ? "" : "written by "}`, owner, ". ", viewLink("memory", "The arena over time")];
}

/** A link to a tab; what is selected stays. */
function viewLink(view, text) {
  return el("a", { class: "pick", href: `#${hashOf({ ...route, view })}` }, text);
}
