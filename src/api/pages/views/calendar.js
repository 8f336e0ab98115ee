// The calendar: months and weeks of events, which are dragged to other days and stretched over
// several, with a mouse, a finger or keys.

import { button } from "./controls.js";
import { daysBetween, firstOfMonth, momentOf, monthText, plusDays, plusMonths, shortDay, today, wallOf, weekdayText, weekOf, wholeDay } from "./days.js";
import { followPointer } from "./drag.js";
import { askAll, call, facts, fieldsByKey, writeRecord } from "./store.js";
import { cardFields, fieldsAsked, loadPeople, needsPeople, textOf, valueOf } from "./values.js";

const { h, nextTick, ref, shallowReactive, watch } = globalThis.Vue;

const LANES = 4;
const LANES_OF_WEEK = 16;

const startOf = (store) => fieldsByKey.get(store.view.manifest.dateFieldKey);
const endOf = (store) => fieldsByKey.get(store.view.manifest.endDateFieldKey) ?? null;
const isWritten = (field) => Boolean(field?.isWritten);

/** The page keeps what is shown in its address, so that it is there after going back. */
function placeOf(location) {
  const query = new URLSearchParams(location.hash.slice(1));
  const month = new URLSearchParams(location.search).get("month");
  const day = query.get("day") ?? (month ? `${month}-01` : today());
  return { day: /^\d{4}-\d\d-\d\d$/.test(day) ? day : today(), mode: query.get("mode") === "week" ? "week" : "month" };
}

/** The first and the last day that a place shows. */
export function rangeOf({ day, mode }) {
  const first = weekOf(mode === "week" ? day : firstOfMonth(day));
  const last = mode === "week" ? plusDays(first, 6) : plusDays(weekOf(plusDays(plusMonths(day, 1), -1)), 6);
  return { first, last };
}

/** The filter for what happens between two days. */
function filterOf(start, end, { first, last }) {
  if (!end) return { field: start.key, op: "between", value: [first, last] };
  return { and: [
    { field: start.key, op: "lte", value: last },
    { or: [{ field: end.key, op: "gte", value: first }, { field: start.key, op: "gte", value: first }] },
  ] };
}

export async function load(store) {
  store.place ??= placeOf(globalThis.location);
  const [start, end] = [startOf(store), endOf(store)];
  const range = rangeOf(store.place);
  const shown = cardFields(store.view, facts.fields, [start.key]);
  if (needsPeople(shown)) await loadPeople();
  const { records, isCut, colors } = await askAll(store, { filter: filterOf(start, end, range), fields: fieldsAsked([start, end, ...shown]), sorts: [{ field: start.key, direction: "asc" }] });
  return { records, isCut, colors };
}

const dayOf = (field, value) => (field.form === "moment" ? wallOf(value).day : value);
const timeOf = (field, value) => (field.form === "moment" ? wallOf(value).time : "");

/** A value that many days later; a moment keeps the time on the clock of the reader. */
function shifted(field, value, days) {
  if (field.form !== "moment") return plusDays(value, days);
  const wall = wallOf(value);
  return momentOf(plusDays(wall.day, days), wall.time);
}

/** The days of a record: `first`, `last`, and the time at which it begins. */
export function spanOf(record, start, end) {
  const from = valueOf(record, start);
  if (!from) return null;
  const to = end && valueOf(record, end);
  const first = dayOf(start, from);
  const last = to ? dayOf(end, to) : first;
  return { first, last: last < first ? first : last, time: timeOf(start, from) };
}

/** The events of a week in lanes: each in the first one that is free on all of its days. */
export function lanesOf(events, firstDay) {
  const lastDay = plusDays(firstDay, 6);
  const taken = [];
  const placed = [];
  const here = events.filter(({ first, last }) => first <= lastDay && last >= firstDay)
    .toSorted((a, b) => a.first.localeCompare(b.first) || daysBetween(b.first, b.last) - daysBetween(a.first, a.last) || a.time.localeCompare(b.time));
  for (const event of here) {
    const from = Math.max(0, daysBetween(firstDay, event.first));
    const to = Math.min(6, daysBetween(firstDay, event.last));
    const days = Array.from({ length: to - from + 1 }, (_, at) => from + at);
    let lane = 0;
    while (days.some((day) => taken[lane]?.has(day))) lane += 1;
    taken[lane] ??= new Set();
    days.forEach((day) => taken[lane].add(day));
    placed.push({ ...event, from, to, lane, isBefore: event.first < firstDay, isAfter: event.last > lastDay });
  }
  return placed;
}

/** The subject of a move: an event as a whole, or one of its ends, by a number of days. */
class Calendar {
  constructor(store) {
    this.store = store;
    this.state = shallowReactive({ held: null, problem: "", adding: null });
    this.root = ref(null);
    watch(() => this.state.held !== null, (isHeld) => (isHeld ? store.hold() : store.release()), { flush: "sync" });
  }

  get start() {
    return startOf(this.store);
  }

  get end() {
    return endOf(this.store);
  }

  get mayMove() {
    return facts.canWrite && isWritten(this.start) && (!this.end || isWritten(this.end));
  }

  /** The event as it is while it is held. */
  spanOf(record) {
    const span = spanOf(record, this.start, this.end);
    const { held } = this.state;
    if (!span || held?.record.id !== record.id) return span;
    const first = held.part === "end" ? span.first : plusDays(span.first, held.days);
    const last = held.part === "start" ? span.last : plusDays(span.last, held.days);
    if (first > last) return held.part === "end" ? { ...span, first, last: first } : { ...span, first: last, last };
    return { ...span, first, last };
  }

  hold(record, part, byKeys = false) {
    Object.assign(this.state, { held: { record, part, days: 0, byKeys }, problem: "" });
  }

  shift(days) {
    if (this.state.held && this.state.held.days !== days) this.state.held = { ...this.state.held, days };
  }

  release() {
    this.state.held = null;
  }

  dayAt(x, y) {
    return document.elementsFromPoint(x, y).find((one) => one.dataset?.day)?.dataset.day ?? null;
  }

  /** The values that a drop writes. */
  valuesOf({ record, part, days }) {
    const { start, end } = this;
    const [from, to] = [valueOf(record, start), end && valueOf(record, end)];
    const span = this.spanOf(record);
    const values = {};
    if (part !== "end") values[start.key] = shifted(start, from, daysBetween(dayOf(start, from), span.first));
    if (end && (to || part === "end") && part !== "start") {
      if (to) values[end.key] = shifted(end, to, daysBetween(dayOf(end, to), span.last));
      else values[end.key] = end.form === "moment" ? momentOf(span.last, timeOf(start, from) || "00:00") : span.last;
    }
    return days === 0 ? null : values;
  }

  async drop() {
    const { held } = this.state;
    const values = this.valuesOf(held);
    const span = this.spanOf(held.record);
    this.release();
    if (!values) return;
    const { record } = held;
    const before = { ...record.data };
    Object.assign(record.data, values);
    try {
      await this.store.during(() => writeRecord(record, values));
      this.store.say(`${record.title || "Untitled"}: ${wholeDay(span.first)}${span.last > span.first ? ` to ${wholeDay(span.last)}` : ""}.`);
    } catch (error) {
      record.data = before;
      this.state.problem = `${record.title || "Untitled"} was not moved. ${error.message}`;
    }
    this.focus(record.id);
  }

  async focus(id) {
    await nextTick();
    this.root.value?.querySelector(`[data-event="${CSS.escape(id)}"] a`)?.focus();
  }

  async go(day, mode = this.store.place.mode) {
    const { store } = this;
    store.place = { day, mode };
    globalThis.history.replaceState(null, "", `#${new URLSearchParams({ day, mode })}`);
    this.state.adding = null;
    await store.reload();
    store.say(mode === "week" ? `Week of ${wholeDay(weekOf(day))}` : monthText(day));
  }

  step(by) {
    const { day, mode } = this.store.place;
    return this.go(mode === "week" ? plusDays(day, 7 * by) : plusMonths(day, by));
  }

  async add(day, title) {
    const { store, start } = this;
    const value = start.form === "moment" ? momentOf(day, "09:00") : day;
    try {
      await call("POST", `/v1/databases/${store.database.id}/records`, { data: { title, [start.key]: value } });
      this.state.adding = null;
      await store.reload();
      store.say(`${title} added on ${wholeDay(day)}.`);
    } catch (error) {
      this.state.problem = error.message;
    }
  }

  /** Handles a key on an event; true when it did something. */
  key(event, record) {
    const { held } = this.state;
    const days = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }[event.key];
    if (event.key === " " && this.mayMove && !held) {
      this.hold(record, "whole", true);
      this.store.say(`${record.title || "Untitled"} grabbed. Move with the arrow keys${this.end ? ", change its end with Shift and the arrow keys" : ""}, drop with Space, cancel with Escape.`);
    } else if (!held) return false;
    else if (event.key === " " || event.key === "Enter") this.drop();
    else if (event.key === "Escape") this.release();
    else if (days) {
      const part = event.shiftKey && this.end ? "end" : held.part;
      this.state.held = { ...held, part: held.days === 0 ? part : held.part, days: held.days + days };
      const span = this.spanOf(record);
      this.store.say(`${wholeDay(span.first)}${span.last > span.first ? ` to ${wholeDay(span.last)}` : ""}`);
    } else return false;
    if (this.state.held) this.focus(record.id);
    return true;
  }
}

function grab(calendar, pressed, record, part) {
  if (!calendar.mayMove || calendar.state.held?.byKeys) return;
  const from = calendar.dayAt(pressed.clientX, pressed.clientY);
  pressed.stopPropagation();
  followPointer(pressed, {
    element: pressed.currentTarget, scroller: calendar.root.value, ghost: false,
    over: (x, y) => {
      const day = calendar.dayAt(x, y);
      if (!calendar.state.held) calendar.hold(record, part);
      if (day) calendar.shift(daysBetween(from, day));
    },
    drop: () => calendar.drop(), cancel: () => calendar.release(),
  });
}

function eventBar(calendar, { record, from, to, lane, time, isBefore, isAfter }, shown) {
  const { state, store } = calendar;
  const title = record.title || "Untitled";
  const details = shown.map((field) => textOf(field, valueOf(record, field))).filter(Boolean);
  const edge = (part) => h("span", { class: ["cal-edge", part], onPointerdown: (event) => grab(calendar, event, record, part) });
  return h("div", {
    class: ["cal-event", { held: state.held?.record.id === record.id, before: isBefore, after: isAfter }], key: `${record.id} ${from}`, "data-event": record.id, "data-color": store.colors?.[record.id],
    style: { gridColumn: `${from + 1} / ${to + 2}`, gridRow: `${lane + 2}` }, title: [title, ...details].join("\n"),
    onPointerdown: (event) => { if (event.pointerType === "mouse" || calendar.mayMove) grab(calendar, event, record, "whole"); },
  }, [
    time && !isBefore ? h("time", null, time.slice(0, 5)) : null,
    h("a", {
      href: `/records/${record.id}`, draggable: false, "aria-describedby": calendar.mayMove ? "calendar-keys" : undefined,
      onKeydown: (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey && calendar.key(event, record)) event.preventDefault(); },
    }, title),
    calendar.mayMove && calendar.end && !isBefore ? edge("start") : null,
    calendar.mayMove && calendar.end && !isAfter ? edge("end") : null,
  ]);
}

function dayCell(calendar, day, column, month) {
  const { state, store } = calendar;
  const isWhole = store.place.mode === "week";
  return h("div", {
    class: ["cal-day", { outside: !isWhole && day.slice(0, 7) !== month, today: day === today() }], key: day, "data-day": day, style: { gridColumn: `${column + 1}` },
    onDblclick: (event) => { if (facts.canWrite && isWritten(calendar.start) && event.target === event.currentTarget) state.adding = day; },
  }, [
    h("span", { class: "cal-number" }, day.endsWith("-01") || isWhole ? shortDay(day) : Number(day.slice(8))),
    facts.canWrite && isWritten(calendar.start) ? h("button", { type: "button", class: "cal-add", "aria-label": `Add a record on ${wholeDay(day)}`, onClick: () => { state.adding = day; } }, "+") : null,
  ]);
}

function newEvent(calendar, day, column) {
  const { state } = calendar;
  return h("input", {
    type: "text", class: "cal-new new-card", key: `new ${day}`, maxlength: 2000, "aria-label": `Title of a new record on ${wholeDay(day)}`, placeholder: "Title", autocomplete: "off", style: { gridColumn: `${column + 1}` },
    onVnodeMounted: ({ el }) => el.focus(),
    onKeydown: (event) => {
      if (event.key === "Escape") state.adding = null;
      if (event.key === "Enter" && event.target.value.trim()) {
        event.preventDefault();
        calendar.add(day, event.target.value.trim());
      }
    },
    onBlur: (event) => { if (!event.target.value) state.adding = null; },
  });
}

function weekRow(calendar, firstDay, events, shown, month) {
  const { state, store } = calendar;
  const isWhole = store.place.mode === "week";
  const most = isWhole ? LANES_OF_WEEK : LANES;
  const days = Array.from({ length: 7 }, (_, at) => plusDays(firstDay, at));
  const placed = lanesOf(events, firstDay);
  const hidden = days.map((_, at) => placed.filter((one) => one.lane >= most && one.from <= at && one.to >= at).length);
  return h("div", { class: ["cal-week", { whole: isWhole }], key: firstDay }, [
    ...days.map((day, at) => dayCell(calendar, day, at, month)),
    ...placed.filter((one) => one.lane < most).map((one) => eventBar(calendar, one, shown)),
    ...days.map((day, at) => {
      if (state.adding === day) return newEvent(calendar, day, at);
      if (hidden[at] === 0) return null;
      return h("button", { type: "button", class: "cal-more", key: `more ${day}`, style: { gridColumn: `${at + 1}` }, disabled: isWhole, onClick: () => calendar.go(day, "week") }, `+${hidden[at]} more`);
    }),
  ]);
}

function bar(calendar) {
  const { day, mode } = calendar.store.place;
  const { first, last } = rangeOf(calendar.store.place);
  const choice = (key, label) => h("button", { type: "button", class: ["button", "small", { primary: mode === key }], "aria-pressed": mode === key, onClick: () => calendar.go(day, key) }, label);
  const name = mode === "week" ? "week" : "month";
  return h("div", { class: "calendar-bar" }, [
    button("‹", () => calendar.step(-1), { "aria-label": `Previous ${name}`, class: "small" }),
    button("Today", () => calendar.go(today()), { class: "small" }),
    button("›", () => calendar.step(1), { "aria-label": `Next ${name}`, class: "small" }),
    h("h2", null, mode === "week" ? `${shortDay(first)} – ${shortDay(last)} ${last.slice(0, 4)}` : monthText(day)),
    h("div", { role: "group", "aria-label": "Range", class: "calendar-bar" }, [choice("month", "Month"), choice("week", "Week")]),
  ]);
}

export const View = {
  props: ["store"],
  setup(props) {
    const calendar = new Calendar(props.store);
    return () => {
      const { store } = props;
      const { state } = calendar;
      const { first, last } = rangeOf(store.place);
      const events = store.records.map((record) => ({ record, ...calendar.spanOf(record) })).filter((one) => one.first);
      const weeks = Array.from({ length: daysBetween(first, last) / 7 + 1 }, (_, at) => plusDays(first, 7 * at)).filter((one) => one <= last);
      const shown = cardFields(store.view, facts.fields, [store.view.manifest.dateFieldKey, store.view.manifest.endDateFieldKey]);
      return h("div", { class: "calendar-view", "data-mode": store.place.mode }, [
        store.problem || state.problem ? h("p", { class: "alert", role: "alert" }, store.problem || state.problem) : null,
        bar(calendar),
        calendar.mayMove ? h("p", { class: "hidden", id: "calendar-keys" }, "Press Space to move the event with the arrow keys, Enter to open it.") : null,
        h("div", { class: "calendar-scroll", ref: calendar.root, tabindex: 0, role: "group", "aria-label": store.view.label }, h("div", { class: "card calendar-grid" }, [
          h("div", { class: "weekdays", "aria-hidden": "true" }, Array.from({ length: 7 }, (_, at) => h("span", { key: at }, weekdayText(plusDays(first, at))))),
          ...weeks.map((week) => weekRow(calendar, week, events, shown, store.place.day.slice(0, 7))),
        ])),
        store.isCut ? h("p", { class: "quiet" }, `Showing the first ${store.records.length} records of this ${store.place.mode}.`) : null,
        h("p", { class: "hidden", role: "status", "aria-live": "assertive" }, store.said),
      ]);
    };
  },
};
