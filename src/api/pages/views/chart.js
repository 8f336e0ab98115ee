// The chart: bars, lines, shares or one number, drawn as SVG from the groups of a query.

import { nameOf, titlesOf } from "./groups.js";
import { aggregateName } from "./settings.js";
import { ask, fieldsByKey, language } from "./store.js";
import { numberText } from "/pages/words.js";
import { loadPeople } from "./values.js";

const { h, onBeforeUnmount, onMounted, onUpdated, ref, shallowRef } = globalThis.Vue;

const PLOT = { left: 48, right: 12, top: 14 };
/** Pixels of a character of a label, and the most of them that are shown. */
const [LETTER, LONGEST] = [6.6, 16];
const SLICES = 8;
const COLORS = ["blue", "green", "orange", "purple", "teal", "pink", "yellow", "red", "brown", "gray"];

const chartOf = (store) => store.view.manifest.chart;
/** The field of a key; a dashboard has charts of several databases, each with its own fields. */
const fieldOf = (store, key) => (store.fieldsByKey ?? fieldsByKey).get(key);
const figureOf = (chart) => ({ op: "count", ...chart.aggregate, as: "figure" });

export async function load(store) {
  const chart = chartOf(store);
  const field = fieldOf(store, chart.xFieldKey);
  if (field?.form === "user" || field?.form === "users") await loadPeople();
  const page = await ask(store, {
    limit: 1, fields: ["title"], aggregates: [figureOf(chart)], ...(chart.filter ? { filter: chart.filter } : {}),
    ...(chart.type !== "number" && field ? { groupBy: { field: field.key, ...(chart.granularity ? { granularity: chart.granularity } : {}) } } : {}),
  });
  const groups = page.groups ?? [];
  const titles = field?.form === "records" ? await titlesOf(groups) : new Map();
  const points = groups.filter((group) => typeof group.aggregates.figure === "number")
    .map((group, place) => ({ key: group.key, value: group.aggregates.figure, ...nameOf(field, chart.granularity, group, titles), place }));
  // The settings are those of these values, also while others are being loaded.
  return { drawn: { chart, points, total: page.aggregates?.figure ?? null, isCut: Boolean(page.groupsTruncated) } };
}

const colorAt = (point) => point.color ?? COLORS[point.place % COLORS.length];

/** Round values from below the lowest to above the highest. */
export function ticksOf(values, most = 5) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const rough = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step));
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });

/** Labels below a plot: as many as there is room for, aslant where they would touch. */
function labelling(points, width) {
  const names = points.map((point) => (point.name.length > LONGEST ? `${point.name.slice(0, LONGEST - 1)}…` : point.name));
  const band = (width - PLOT.left - PLOT.right) / points.length;
  const isAslant = Math.max(...names.map((name) => name.length)) * LETTER > band;
  const left = isAslant ? Math.max(PLOT.left, names[0].length * LETTER * 0.87 - band / 2) : PLOT.left;
  return { names, left, isAslant, step: isAslant ? Math.max(1, Math.ceil(22 / band)) : 1, bottom: isAslant ? 64 : 30 };
}

function axes(points, ticks, x, y, { width, height, left, names, isAslant, step, bottom }) {
  return [
    ...ticks.map((tick) => h("g", { class: "tick", key: `y ${tick}` }, [
      h("line", { x1: left, x2: width - PLOT.right, y1: y(tick), y2: y(tick) }),
      h("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, short.format(tick)),
    ])),
    ...points.filter((_, at) => at % step === 0).map((point) => h("text", {
      class: "label", key: `x ${point.key}`, "text-anchor": isAslant ? "end" : "middle", x: x(point.place), y: height - bottom + 20,
      transform: isAslant ? `rotate(-30 ${x(point.place)} ${height - bottom + 20})` : undefined,
    }, names[point.place])),
  ];
}

function plotted(type, points, told, [width, height]) {
  const labels = { width, height, ...labelling(points, width) };
  const ticks = ticksOf(points.map((point) => point.value));
  const [low, high] = [ticks[0], ticks.at(-1)];
  const band = (width - labels.left - PLOT.right) / points.length;
  const x = (place) => labels.left + band * (place + 0.5);
  const y = (value) => PLOT.top + (height - PLOT.top - labels.bottom) * (1 - (value - low) / (high - low));
  const placed = points.map((point, place) => ({ ...point, place, hue: colorAt(point) }));
  const marks = type === "bar"
    ? placed.map((point) => h("rect", {
      class: "chart-mark", key: point.key, "data-color": point.hue, x: x(point.place) - band * 0.36, width: band * 0.72,
      y: Math.min(y(point.value), y(0)), height: Math.max(1, Math.abs(y(point.value) - y(0))), rx: 3,
    }, h("title", null, told(point))))
    : [
      // Records without a value are no place on the line.
      h("path", { class: "line", d: placed.filter((point) => point.key !== "").map((point, at) => `${at === 0 ? "M" : "L"}${x(point.place)},${y(point.value)}`).join("") }),
      ...placed.map((point) => h("circle", { class: "dot", key: point.key, cx: x(point.place), cy: y(point.value), r: 4 }, h("title", null, told(point)))),
    ];
  return [...axes(placed, ticks, x, y, labels), ...marks];
}

/** The largest groups as slices, the others together as one. */
export function slicesOf(points) {
  const sorted = points.filter((point) => point.value > 0).toSorted((a, b) => b.value - a.value);
  if (sorted.length <= SLICES) return sorted;
  const rest = sorted.slice(SLICES - 1).reduce((sum, point) => sum + point.value, 0);
  return [...sorted.slice(0, SLICES - 1), { key: "others", name: `${sorted.length - SLICES + 1} others`, value: rest, color: "gray", place: SLICES }];
}

function pie(points, told, [width, height]) {
  const slices = slicesOf(points);
  const sum = slices.reduce((total, point) => total + point.value, 0);
  const radius = Math.max(30, Math.min(height / 2 - 12, width * 0.24));
  const [cx, cy] = [radius + 8, height / 2];
  const room = Math.max(4, Math.floor((width - 2 * radius - 62) / LETTER) - 7);
  const at = (share) => [cx + radius * Math.sin(2 * Math.PI * share), cy - radius * Math.cos(2 * Math.PI * share)].map((one) => one.toFixed(2)).join(",");
  let from = 0;
  const shapes = slices.map((point) => {
    const to = from + point.value / sum;
    const d = slices.length === 1 ? `M${cx - radius},${cy}a${radius},${radius} 0 1,0 ${2 * radius},0a${radius},${radius} 0 1,0 ${-2 * radius},0`
      : `M${cx},${cy}L${at(from)}A${radius},${radius} 0 ${to - from > 0.5 ? 1 : 0},1 ${at(to)}Z`;
    from = to;
    return h("path", { class: "slice", key: point.key, d, "data-color": colorAt(point) }, h("title", null, told(point)));
  });
  const legend = slices.map((point, place) => h("g", { key: `legend ${point.key}`, transform: `translate(${2 * radius + 30} ${height / 2 - slices.length * 12 + place * 24})` }, [
    h("rect", { class: "chart-mark", width: 14, height: 14, rx: 3, "data-color": colorAt(point) }),
    h("text", { class: "label", x: 24, y: 12 }, `${point.name.length > room ? `${point.name.slice(0, room - 1)}…` : point.name} · ${Math.round((100 * point.value) / sum)} %`),
  ]));
  return [...shapes, ...legend];
}

function table(points, head, told) {
  return h("details", { class: "chart-values" }, [
    h("summary", null, "Values"),
    h("div", { class: "card scroll" }, h("table", { class: "table" }, [
      h("thead", null, h("tr", null, [h("th", { scope: "col" }, head[0]), h("th", { scope: "col", class: "end" }, head[1])])),
      h("tbody", null, points.map((point) => h("tr", { key: point.key }, [h("td", null, point.name), h("td", { class: "end number" }, told(point.value))]))),
    ])),
  ]);
}

export const View = {
  props: ["store"],
  setup(props) {
    const drawing = ref(null);
    // Drawn for its place, so that its texts have the size of all others.
    const size = shallowRef([880, 360]);
    const sizes = new ResizeObserver(([{ contentRect: { width, height } }]) => {
      const found = [Math.round(width), Math.round(height)];
      if (found.every((side) => side > 0) && found.join() !== size.value.join()) size.value = found;
    });
    const watched = () => { sizes.disconnect(); if (drawing.value) sizes.observe(drawing.value); };
    onMounted(watched);
    onUpdated(watched);
    onBeforeUnmount(() => sizes.disconnect());
    return () => view(props.store, drawing, size.value);
  },
};

function view(store, drawing, size) {
  if (store.problem || !store.drawn) return h("p", { class: "alert", role: "alert" }, store.problem);
  const { chart, points, total: value, isCut } = store.drawn;
  const [field, figure] = [fieldOf(store, chart.xFieldKey), figureOf(chart)];
  const measured = fieldOf(store, figure.field);
  const figureName = figure.op === "count" ? aggregateName("count") : `${aggregateName(figure.op)}: ${measured?.label ?? ""}`;
  const isOfField = measured && ["sum", "avg", "min", "max", "median", "range"].includes(figure.op);
  const shown = (value) => numberText(isOfField ? measured : null, Math.round(value * 1e6) / 1e6);
  const told = (point) => `${point.name}: ${shown(point.value)}`;
  if (chart.type === "number") {
    const text = typeof value === "number" ? shown(value) : value === null ? "—" : String(value);
    return h("figure", { class: "card chart-card chart-number" }, [h("b", { style: { "--length": text.length } }, text), h("figcaption", { class: "quiet" }, figureName)]);
  }
  const caption = `${figureName} by ${field?.label ?? chart.xFieldKey}${chart.granularity ? `, ${chart.granularity}` : ""}`;
  if (points.length === 0) return h("div", { class: "empty" }, h("h2", null, "No values to show"));
  return h("figure", { class: "card chart-card", "data-type": chart.type }, [
    h("figcaption", null, caption),
    h("svg", { ref: drawing, viewBox: `0 0 ${size.join(" ")}`, role: "img", "aria-label": `${caption}. ${points.slice(0, 12).map(told).join("; ")}` }, chart.type === "pie" ? pie(points, told, size) : plotted(chart.type, points, told, size)),
    isCut ? h("p", { class: "quiet" }, `Showing the first ${points.length} groups`) : null,
    table(points, [field?.label ?? "", figureName], shown),
  ]);
}
