"use strict";
// Elements, made with text only: nothing that a model says is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (functions are listeners) and children (strings become text). */
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in a drawing. */
function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(2)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** Replace what an element holds. */
function show(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

/** A link to something of the report. */
function link(pick, text) {
  return el("a", { class: "pick", href: `#${hashOf({ ...route, pick })}` }, text);
}

/** Enter and space do what a click does. */
function pressed(event, act) {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
}
