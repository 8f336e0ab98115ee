// A dashboard that a link shares: its widgets in their places, and its tables of figures as charts.

const { createApp, h } = globalThis.Vue;

for (const widget of document.querySelectorAll(".widget")) {
  const { x, y, w, h: height } = widget.dataset;
  Object.assign(widget.style, { gridColumn: `${Number(x) + 1} / span ${w}`, gridRow: `${Number(y) + 1} / span ${height}` });
}

async function draw() {
  const places = document.querySelectorAll(".chart-of");
  if (places.length === 0) return;
  const chart = await import("/pages/views/chart.js");
  for (const place of places) {
    const points = [...place.querySelectorAll("tbody tr")].map((row, at) => ({ key: `${at}`, name: row.dataset.name, value: Number(row.dataset.value), place: at, ...(row.dataset.tint ? { color: row.dataset.tint } : {}) }));
    const { type, label, by } = place.dataset;
    const [op, field] = label.split(": ");
    const aggregate = field ? { op, field } : { op: "count" };
    const drawn = { chart: { type, xFieldKey: by, aggregate }, points, total: null, isCut: false };
    const store = { drawn, problem: "", fieldsByKey: new Map([by, field].map((one) => [one, { key: one, label: one }])) };
    createApp({ render: () => h(chart.View, { store }) }).mount(place);
  }
}

draw();
document.documentElement.dataset.drawn = "true";
