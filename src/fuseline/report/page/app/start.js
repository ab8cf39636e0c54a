"use strict";
// Unpack, then show what the address says.

const THEMES = ["", "light", "dark"];

function turnTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
}

function showSides() {
  if (report.sides.length < 2) return;
  const buttons = report.sides.map((one, number) => el("button", { type: "button", "aria-pressed": String(number === route.side), click: () => go({ side: number, pick: "" }) }, one.title));
  show(document.getElementById("side-switch"), buttons);
}

let byKeyboard = false;

/** Whoever selects with the keyboard goes on reading what was selected; Escape goes back to where it was. */
function startKeyboard() {
  document.addEventListener("keydown", (event) => {
    byKeyboard = true;
    if (event.key !== "Escape" || route.pick === "" || event.target.id === "search") return;
    const before = [...document.querySelectorAll("#view [data-pick]")].find((one) => one.getAttribute("data-pick") === route.pick) ?? document.getElementById("view");
    go({ pick: "" });
    before.focus();
  });
  document.addEventListener("pointerdown", () => { byKeyboard = false; });
}

/** Show the route; a change of what is selected alone leaves the tab as it stands, scrolled and filtered. */
function follow() {
  const next = routeOf(location.hash);
  const picked = next.pick !== route.pick && next.pick !== "";
  const moved = next.view !== route.view || next.side !== route.side;
  route = next;
  if (moved) {
    showTabs();
    showSides();
    showView();
  }
  for (const row of document.querySelectorAll("tr[data-pick]")) row.setAttribute("aria-current", String(row.dataset.pick === route.pick && route.pick !== ""));
  for (const shape of document.querySelectorAll(".chart [data-pick]")) shape.classList.toggle("selected", shape.getAttribute("data-pick") === route.pick && route.pick !== "");
  for (const graph of document.querySelectorAll(".graph")) graph.mark();
  showDetails();
  if (picked && byKeyboard) document.getElementById("details").focus();
}

async function start() {
  report = await unpack("main");
  startSearch();
  startKeyboard();
  document.getElementById("theme").addEventListener("click", turnTheme);
  window.addEventListener("hashchange", follow);
  route = { view: "", side: -1, pick: "" };
  follow();
  document.documentElement.dataset.ready = "true";
}

start().catch((problem) => {
  show(document.getElementById("view"), el("p", { class: "missed" }, `this page cannot be shown: ${problem}`));
});
