"use strict";
// Numbers as people read them.

function scaled(value, steps) {
  const found = steps.find(([scale]) => Math.abs(value) >= scale) ?? steps[steps.length - 1];
  return `${Number((value / found[0]).toPrecision(3))} ${found[1]}`.trim();
}

/** `8.95 M`. */
function quantity(value) {
  if (Math.abs(value) < 10000) return String(Number(value.toPrecision(6)));
  return scaled(value, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]);
}

/** Three digits. */
function rounded(value) {
  return String(Number(value.toPrecision(3)));
}

/** `7.22 kB`, `896 B`. */
function bytesText(value) {
  return scaled(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
}

/** `16.3 us`. */
function seconds(value) {
  return value === 0 ? "0" : scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
}

function percent(value) {
  return `${Number((100 * value).toPrecision(3))} %`;
}

/** What a dispatch takes: measured, else predicted. */
function timeOf(dispatch) {
  return dispatch.seconds ?? dispatch.predicted;
}

/** All of a run's dispatches. */
function totalTime(shown) {
  return shown.dispatches.reduce((sum, one) => sum + timeOf(one), 0);
}

const ABOVE_THE_ROOF = "Minimal filtering (Winograd) and 8-bit kernels do more than the operations of the direct form in f32, and may lie above it";

/** The least time that the machine's peaks allow a dispatch, and which peak that is. */
function roofOf(shown, dispatch) {
  if (!shown.peaks) return null;
  const compute = dispatch.flops / shown.peaks.flops_per_ns / 1e9;
  const memory = (dispatch.read + dispatch.written) / shown.peaks.cached_bytes_per_ns / 1e9;
  return { seconds: Math.max(compute, memory), by: compute >= memory ? "arithmetic" : "memory" };
}

function roofText(shown, dispatch) {
  const roof = roofOf(shown, dispatch);
  if (!roof || !timeOf(dispatch)) return "";
  return `${percent(roof.seconds / timeOf(dispatch))} of the roof (${roof.by}), which is ${seconds(roof.seconds)}`;
}
