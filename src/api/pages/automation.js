// The picture of an automation: its graph, which is in the page.

import { Drawing } from "/pages/drawing.js";

const graph = JSON.parse(document.getElementById("graph-data").textContent);
const drawing = new Drawing(
  document.getElementById("graph"), document.getElementById("scroller"), () => {});
drawing.draw(graph);
drawing.show(new Map());
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => drawing.zoom(button.dataset.zoom));
}
