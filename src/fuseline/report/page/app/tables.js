"use strict";
// Tables that sort by any column and filter by any text.

const FIRST_ROWS = 300;

/**
 * A table. Columns: `{title, of(row), text(value)?, number?, cell(row)?, hint?}`; `of` is what is sorted and filtered by.
 * `pickOf(row)` names what a click on a row selects.
 */
function table({ caption, columns, rows, pickOf, filter = rows.length > 12, sortBy = null }) {
  const state = { words: "", column: sortBy?.column ?? -1, down: sortBy?.down ?? false, all: false };
  const body = el("tbody");
  const heads = columns.map((column, number) => head(column, number, state, refill));
  const count = el("p", { class: "dim", role: "status" });
  function refill() {
    const wanted = sorted(rows.filter((row) => matches(columns, row, state.words)), columns, state);
    const shown = state.all ? wanted : wanted.slice(0, FIRST_ROWS);
    show(body, shown.map((row) => line(columns, row, pickOf)));
    const rest = wanted.length - shown.length;
    const more = el("button", { type: "button", click: () => { state.all = true; refill(); } }, `show all ${wanted.length}`);
    show(count, `${shown.length} of ${rows.length} rows `, rest > 0 ? more : null);
    heads.forEach((cell, number) => cell.setAttribute("aria-sort", number !== state.column ? "none" : state.down ? "descending" : "ascending"));
  }
  const field = el("input", { type: "search", placeholder: "filter", "aria-label": `filter ${caption}`, input: (event) => { state.words = event.target.value.toLowerCase(); refill(); } });
  refill();
  const made = el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), body);
  return el("div", { class: "listing" }, filter ? field : null, filter ? count : null, el("div", { class: "scroll" }, made));
}

function head(column, number, state, refill) {
  const sort = () => {
    state.down = state.column === number ? !state.down : Boolean(column.number);
    state.column = number;
    refill();
  };
  return el("th", { scope: "col", class: column.number ? "number" : "" }, el("button", { type: "button", click: sort, title: column.hint ?? "sort by this" }, column.title));
}

function matches(columns, row, words) {
  return words === "" || columns.some((column) => String(column.of(row)).toLowerCase().includes(words));
}

function sorted(rows, columns, { column, down }) {
  if (column < 0) return rows;
  const key = columns[column].of;
  const order = (a, b) => (typeof key(a) === "number" ? key(a) - key(b) : String(key(a)).localeCompare(String(key(b))));
  return [...rows].sort((a, b) => (down ? order(b, a) : order(a, b)));
}

function line(columns, row, pickOf) {
  const cells = columns.map((column) => {
    const value = column.of(row);
    const content = column.cell ? column.cell(row) : column.text ? column.text(value) : String(value);
    return el("td", { class: column.number ? "number" : column.long ? "long" : "" }, content);
  });
  const pick = pickOf?.(row);
  if (!pick) return el("tr", {}, cells);
  const choose = (event) => { if (!event.target.closest("a, button")) go({ pick }); };
  const press = (event) => { if (event.key === "Enter") choose(event); };
  return el("tr", { class: "pick", tabindex: 0, "data-pick": pick, click: choose, keydown: press }, cells);
}

/** A bar of a share between 0 and 1. */
function shareBar(share) {
  const width = `${Math.round(1000 * Math.min(Math.max(share, 0), 1)) / 10}%`;
  return el("div", { class: "bar", title: percent(share) }, el("i", { style: `width: ${width}` }));
}

/** Names and values, one below the other. */
function facts(rows) {
  return el("table", { class: "facts", "aria-label": "facts" }, el("tbody", {}, rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)))));
}
