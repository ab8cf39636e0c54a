"use strict";
// The tabs: each part of the report registers one.

const views = new Map();

/** `show()` answers the elements of a tab; `wanted()` says whether there is anything to show. */
function registerView(id, title, show_, wanted = () => true) {
  views.set(id, { title, show: show_, wanted });
}

function showTabs() {
  const tabs = [...views].filter(([, view]) => view.wanted()).map(([id, view]) => tab(id, view));
  show(document.getElementById("tabs"), tabs);
}

function tab(id, view) {
  const selected = id === route.view;
  return el("button", {
    type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "view", "aria-selected": String(selected), tabindex: selected ? 0 : -1,
    click: () => go({ view: id }), keydown: moveAlong,
  }, view.title);
}

/** Arrow keys go from tab to tab. */
function moveAlong(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...document.querySelectorAll("#tabs [role=tab]")];
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
}

function showView() {
  const view = views.get(route.view)?.wanted() ? views.get(route.view) : views.get("overview");
  const element = document.getElementById("view");
  element.setAttribute("aria-labelledby", `tab-${route.view}`);
  show(element, view.show());
}
