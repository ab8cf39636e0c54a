"use strict";
// Drawings with a scale: roofline, memory over time, shares of time.

const CHART = { width: 760, height: 380, left: 64, bottom: 40, top: 12, right: 16 };

/** Performance over intensity, both logarithmic, under the machine's roof. */
function rooflineChart(shown) {
  const points = shown.dispatches.filter((one) => one.flops > 0 && one.read + one.written > 0 && timeOf(one) > 0)
    .map((one) => ({ one, x: one.flops / (one.read + one.written), y: one.flops / timeOf(one) / 1e9 }));
  if (!shown.peaks || points.length === 0) return el("p", { class: "dim" }, "no dispatch computes");
  const peak = shown.peaks.flops_per_ns;
  const xs = spanOf([...points.map((point) => point.x), peak / shown.peaks.cached_bytes_per_ns, 0.1]);
  const ys = spanOf([...points.map((point) => point.y), peak, peak / 100]);
  const x = logScale(xs, CHART.left, CHART.width - CHART.right);
  const y = logScale(ys, CHART.height - CHART.bottom, CHART.top);
  const roof = (rate) => draw("polyline", { class: "roof", points: [xs[0], Math.min(peak / rate, xs[1]), xs[1]].map((at) => `${x(at)},${y(Math.max(Math.min(at * rate, peak), ys[0]))}`).join(" ") });
  const dots = points.map(({ one, x: at, y: rate }) => dot(shown, one, x(at), y(rate)));
  const drawing = draw("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "group", "aria-label": "roofline: speed of each dispatch over its operations per byte" },
    logAxes(x, y, xs, ys, "operations per byte", "GFLOP/s"), roof(shown.peaks.cached_bytes_per_ns), roof(shown.peaks.memory_bytes_per_ns), dots);
  return el("div", { class: "chart", id: "roofline" }, drawing, el("p", { class: "dim" }, `${peakWords(shown)}. A circle is a dispatch, as large as its time.`));
}

function peakWords({ peaks }) {
  return `Peaks, ${peaks.measured ? "measured here" : "assumed (--measure measures them)"}: ${rounded(peaks.flops_per_ns)} GFLOP/s in f32, ${rounded(peaks.cached_bytes_per_ns)} GB/s through the caches (upper roof), ${rounded(peaks.memory_bytes_per_ns)} GB/s from memory (lower)`;
}

/** What the column says. */
function roofWords(shown) {
  return `Of the roof: the least time that the peaks allow, as a part of the time it takes; 100 % is as fast as can be. ${ABOVE_THE_ROOF}. ${peakWords(shown)}.`;
}

function dot(shown, one, x, y) {
  const radius = 3 + 14 * Math.sqrt(timeOf(one) / totalTime(shown));
  const pick = `dispatch:${one.name}`;
  const choose = () => go({ pick });
  const words = `${one.label}: ${seconds(timeOf(one))}, ${roofText(shown, one)}`;
  return draw("circle", { cx: x, cy: y, r: radius, tabindex: 0, role: "button", "aria-label": words, "data-pick": pick, class: pick === route.pick ? "selected" : "", click: choose, keydown: (event) => pressed(event, choose) }, draw("title", {}, words));
}

/** The decades around all values. */
function spanOf(values) {
  const found = values.filter((value) => value > 0).map(Math.log10);
  return [10 ** Math.floor(Math.min(...found)), 10 ** Math.ceil(Math.max(...found))];
}

function logScale([least, most], from, to) {
  const width = Math.log10(most / least) || 1;
  return (value) => from + ((to - from) * Math.log10(value / least)) / width;
}

function logAxes(x, y, xs, ys, xName, yName) {
  const parts = [];
  for (let at = xs[0]; at <= xs[1] * 1.01; at *= 10) parts.push(tick(x(at), CHART.height - CHART.bottom, x(at), CHART.top, quantity(at), x(at), CHART.height - CHART.bottom + 14, "middle"));
  for (let at = ys[0]; at <= ys[1] * 1.01; at *= 10) parts.push(tick(CHART.left, y(at), CHART.width - CHART.right, y(at), quantity(at), CHART.left - 6, y(at) + 4, "end"));
  parts.push(draw("text", { x: CHART.width - CHART.right, y: CHART.height - 8, "text-anchor": "end", class: "sub" }, xName), draw("text", { x: CHART.left + 6, y: CHART.top + 12, class: "sub" }, yName));
  return parts;
}

function tick(x1, y1, x2, y2, text, x, y, anchor) {
  return draw("g", {}, draw("line", { class: "axis", x1, y1, x2, y2 }), draw("text", { x, y, "text-anchor": anchor, class: "sub" }, text));
}

/** The arena: waves from left to right, offsets from bottom to top; the wave that uses most is marked. */
function memoryChart(shown) {
  const { arena, transients } = shown.memory;
  if (!transients.length) return el("p", { class: "dim" }, "nothing lies in the arena");
  const waves = Math.max(...transients.map(([, , , last]) => last)) + 1;
  const x = (wave) => CHART.left + ((CHART.width - CHART.left - CHART.right) * wave) / waves;
  const y = (at) => CHART.height - CHART.bottom - ((CHART.height - CHART.bottom - CHART.top) * at) / Math.max(arena, 1);
  const peak = peakOf(shown);
  const lives = transients.map(([offset, bytes, first, last, writer, scratch]) => {
    const pick = writer ? `dispatch:${writer}` : "";
    const words = `${scratch ? "scratch" : writer}: ${bytesText(bytes)} at ${quantity(offset)}, waves ${first} to ${last}`;
    return draw("rect", { class: `life ${scratch ? "scratch" : ""} ${pick !== "" && pick === route.pick ? "selected" : ""}`, x: x(first), width: Math.max(x(last + 1) - x(first) - 0.5, 1), y: y(offset + bytes), height: Math.max(y(offset) - y(offset + bytes), 0.7), "data-pick": pick, click: () => pick && go({ pick }) }, draw("title", {}, words));
  });
  const marked = draw("rect", { class: "peak", x: x(peak.wave), width: x(peak.wave + 1) - x(peak.wave), y: CHART.top, height: CHART.height - CHART.top - CHART.bottom });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => tick(CHART.left, y(part * arena), CHART.width - CHART.right, y(part * arena), `${bytesText(part * arena)}`, CHART.left - 6, y(part * arena) + 4, "end"));
  const drawing = draw("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", "aria-label": `memory over ${waves} waves, the most in wave ${peak.wave}` },
    ticks, marked, lives, draw("text", { x: CHART.width - CHART.right, y: CHART.height - 8, "text-anchor": "end", class: "sub" }, `waves (0 to ${waves - 1}), each behind a barrier`));
  return el("div", { class: "chart", id: "memory-chart" }, drawing);
}

/** The wave that uses most of the arena, how much, and what lies there. A result in its operand's place counts once. */
function peakOf(shown) {
  const waves = Math.max(-1, ...shown.memory.transients.map(([, , , last]) => last)) + 1;
  let best = { wave: 0, bytes: 0, lives: [] };
  for (let wave = 0; wave < waves; wave += 1) {
    const lives = shown.memory.transients.filter(([, , first, last]) => first <= wave && wave <= last);
    const bytes = covered(lives);
    if (bytes > best.bytes) best = { wave, bytes, lives };
  }
  return best;
}

function covered(lives) {
  let end = 0;
  let bytes = 0;
  for (const [offset, size] of [...lives].sort((a, b) => a[0] - b[0])) {
    bytes += Math.max(0, offset + size - Math.max(offset, end));
    end = Math.max(end, offset + size);
  }
  return bytes;
}
