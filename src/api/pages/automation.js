// The picture of an automation: its graph, which is in the page.

import { Drawing } from "/pages/drawing.js";
import { sign } from "/pages/words.js";

const drawings = new WeakMap();

/** Draws the graph of the page, unless it is drawn already. */
function draw() {
  const data = document.getElementById("graph-data");
  if (!data || drawings.has(data)) return;
  const graph = JSON.parse(data.textContent);
  const drawing = new Drawing(
    document.getElementById("graph"), document.getElementById("scroller"), () => {});
  drawings.set(data, drawing);
  drawing.draw(graph);
  drawing.show(new Map());
  const { nodes = {}, edges = {} } = graph.changes ?? {};
  for (const node of graph.nodes) {
    const drawn = drawing.nodes.get(node.id);
    const change = nodes[node.id];
    if (change) drawn.dataset.change = change;
    drawn.querySelector(".mark").setAttribute("href", `#icon-kind-${sign(node.kind)}`);
    const words = [node.label ?? node.id, node.kind.replaceAll("_", " "), change];
    drawn.setAttribute("aria-label", words.filter(Boolean).join(", "));
  }
  for (const [edge, drawn] of drawing.edges) {
    if (edges[edge.id]) drawn.dataset.change = edges[edge.id];
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-zoom]");
  if (button) drawings.get(document.getElementById("graph-data"))?.zoom(button.dataset.zoom);
});
new MutationObserver(draw).observe(document.body, { childList: true, subtree: true });
draw();
