// The hours of a day or of a week: events are boxes as long as they take, below the row of whole days.

import { clockText, plusDays, today, wallOf } from "./days.js";
import { DAY, grab, HOUR, QUARTER } from "./schedule.js";

const { h, onBeforeUnmount, onMounted, ref } = globalThis.Vue;

const HEIGHT = 48;
/** The hour to which a day is scrolled at first. */
const FIRST = 7;
const SHORT = 2 * QUARTER;
const dayStamp = (day) => Date.parse(`${day}T00:00:00Z`) / 1000;
const pixels = (seconds) => `${(seconds / HOUR) * HEIGHT}px`;

/** The parts of events on one day, side by side where they overlap: `column` of `columns`. */
export function partsOf(events, day) {
  const start = dayStamp(day);
  const end = start + DAY;
  const parts = events.filter(({ from, to }) => from < end && to > start)
    .map((event) => ({ ...event, top: Math.max(event.from, start) - start, bottom: Math.min(event.to, end) - start, isBefore: event.from < start, isAfter: event.to > end }))
    .toSorted((a, b) => a.top - b.top || b.bottom - a.bottom);
  let group = [];
  let ends = [];
  const close = () => { for (const one of group) one.columns = ends.length; };
  for (const part of parts) {
    if (ends.every((one) => one <= part.top)) {
      close();
      [group, ends] = [[], []];
    }
    const free = ends.findIndex((one) => one <= part.top);
    part.column = free < 0 ? ends.length : free;
    // The shortest box still has a line of text.
    ends[part.column] = Math.max(part.bottom, part.top + SHORT);
    group.push(part);
  }
  close();
  return parts;
}

function eventBox(calendar, part, { shown, link }) {
  const { state, store } = calendar;
  const { record, top, bottom, column, columns, isBefore, isAfter, from, to } = part;
  const edge = (name) => h("span", { class: ["cal-edge", name], onPointerdown: (event) => grab(calendar, event, record, name) });
  return h("div", {
    class: ["cal-event", "timed", { held: state.held?.record.id === record.id, before: isBefore, after: isAfter, short: bottom - top <= SHORT }], key: `${record.id} ${top}`, "data-event": record.id, "data-color": store.colors?.[record.id],
    style: { top: pixels(top), height: pixels(Math.max(bottom - top, SHORT)), left: `${(100 * column) / columns}%`, width: `calc(${100 / columns}% - 4px)` },
    title: [record.title || "Untitled", `${clockText(from)} – ${clockText(to)}`, ...shown(record)].join("\n"),
    onPointerdown: (event) => grab(calendar, event, record, "whole"),
  }, [
    link(record), h("time", null, `${clockText(from)} – ${clockText(to)}`),
    calendar.mayMove && calendar.end && !isBefore ? edge("start") : null,
    calendar.mayMove && calendar.end && !isAfter ? edge("end") : null,
  ]);
}

/** The line of this moment. */
const Now = {
  setup() {
    const seconds = ref(0);
    const tell = () => {
      const [hours, minutes] = wallOf(Date.now()).time.split(":").map(Number);
      seconds.value = hours * HOUR + minutes * 60;
    };
    tell();
    const timer = setInterval(tell, 30_000);
    onBeforeUnmount(() => clearInterval(timer));
    return () => h("i", { class: "hours-now", "aria-hidden": "true", style: { top: pixels(seconds.value) } });
  },
};

function column(calendar, day, events, given) {
  const { state } = calendar;
  const adds = (event) => {
    if (!calendar.mayAdd || event.target !== event.currentTarget) return;
    const place = calendar.placeAt(event.clientX, event.clientY);
    state.adding = { ...place, stamp: Math.floor(place.stamp / SHORT) * SHORT };
  };
  const isAdding = state.adding?.hasTime && state.adding.stamp >= dayStamp(day) && state.adding.stamp < dayStamp(day) + DAY;
  return h("div", { class: ["hours-day", { today: day === today() }], key: day, "data-day": day, "data-hours": "", onDblclick: adds }, [
    ...partsOf(events, day).map((part) => eventBox(calendar, part, given)),
    isAdding ? h("div", { class: "hours-new", style: { top: pixels(state.adding.stamp - dayStamp(day)) } }, given.newEvent(state.adding)) : null,
    day === today() ? h(Now) : null,
  ]);
}

/** The columns of some days. `given` has what boxes share with the bars of whole days. */
export const Hours = {
  props: ["calendar", "first", "count", "events", "given"],
  setup(props) {
    const box = ref(null);
    onMounted(() => { box.value.scrollTop = FIRST * HEIGHT - 12; });
    return () => {
      const { calendar, first, count, events, given } = props;
      const days = Array.from({ length: count }, (_, at) => plusDays(first, at));
      return h("div", { class: "hours-scroll", ref: box }, h("div", { class: "hours", style: { height: `${24 * HEIGHT}px`, gridTemplateColumns: `var(--gutter) repeat(${count}, minmax(0, 1fr))` } }, [
        h("div", { class: "hours-gutter", "aria-hidden": "true" }, Array.from({ length: 23 }, (_, at) => h("span", { key: at, style: { top: pixels((at + 1) * HOUR) } }, clockText((at + 1) * HOUR)))),
        ...days.map((day) => column(calendar, day, events, given)),
      ]));
    };
  },
};
