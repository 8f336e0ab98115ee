// The picture of an automation: its graph, which is in the page.

import { Drawing } from "/pages/drawing.js";

/** The sign of a kind, by a word of its name; what computes has the rest. */
const SIGNS = [
  [/approval|^form/, "ask"], [/delay|wait/, "wait"], [/condition|switch|branch|join/, "branch"],
  [/each|while|loop/, "loop"], [/record|database|query/, "rows"], [/mail|notif|push|message/, "tell"],
  [/http|call|webhook|action|model|source/, "call"], [/stop|fail|end/, "end"],
];
const sign = (kind) => SIGNS.find(([words]) => words.test(kind))?.[1] ?? "compute";

const graph = JSON.parse(document.getElementById("graph-data").textContent);
const drawing = new Drawing(
  document.getElementById("graph"), document.getElementById("scroller"), () => {});
drawing.draw(graph);
drawing.show(new Map());
for (const node of graph.nodes) {
  const drawn = drawing.nodes.get(node.id);
  drawn.querySelector(".mark").setAttribute("href", `#icon-kind-${sign(node.kind)}`);
  drawn.setAttribute("aria-label", `${node.label ?? node.id}, ${node.kind.replaceAll("_", " ")}`);
}
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => drawing.zoom(button.dataset.zoom));
}
