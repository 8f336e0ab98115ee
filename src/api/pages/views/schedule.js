// What happens when: the events of a calendar as spans of time on the clock of the reader, and their
// moves. A place in time is a number of seconds on that clock, so that days all have 24 hours.

import { clockText, firstOfMonth, monthText, plusDays, plusMonths, stampOf, stampParts, today, valueAt, weekOf, wholeDay } from "./days.js";
import { followPointer } from "./drag.js";
import { askAll, call, facts, fieldsByKey, writeRecord, written } from "./store.js";
import { cardFields, fieldsAsked, loadPeople, needsPeople, valueOf } from "./values.js";

const { nextTick, ref, shallowReactive, watch } = globalThis.Vue;

export const DAY = 86_400;
export const HOUR = 3_600;
export const QUARTER = 900;
/** What a calendar shows; a timeline is a `line` of the days of a month. */
const MODES = ["month", "week", "day"];
/** The hour at which an event begins that had none. */
const MORNING = 9 * HOUR;

export const startOf = (store) => fieldsByKey.get(store.view.manifest.dateFieldKey);
export const endOf = (store) => fieldsByKey.get(store.view.manifest.endDateFieldKey) ?? null;
export const isWritten = (field) => Boolean(field?.isWritten);
const isMoment = (field) => field?.form === "moment";
const dayOf = (stamp) => stampParts(stamp).day;
const midnight = (stamp) => Math.floor(stamp / DAY) * DAY;

/** The page keeps what is shown in its address, so that it is there after going back. */
function placeOf(location, kind) {
  const query = new URLSearchParams(location.hash.slice(1));
  const month = new URLSearchParams(location.search).get("month");
  const day = query.get("day") ?? (month ? `${month}-01` : today());
  const mode = query.get("mode");
  const shown = kind === "timeline" ? "line" : MODES.includes(mode) ? mode : "month";
  return { day: /^\d{4}-\d\d-\d\d$/.test(day) ? day : today(), mode: shown };
}

/** The first and the last day that a place shows. */
export function rangeOf({ day, mode }) {
  if (mode === "day") return { first: day, last: day };
  if (mode === "line") return { first: firstOfMonth(day), last: plusDays(plusMonths(day, 1), -1) };
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
  store.place ??= placeOf(globalThis.location, store.view.kind);
  const [start, end] = [startOf(store), endOf(store)];
  const range = rangeOf(store.place);
  const shown = cardFields(store.view, facts.fields, [start.key]);
  if (needsPeople(shown)) await loadPeople();
  const { records, isCut, colors } = await askAll(store, { filter: filterOf(start, end, range), fields: fieldsAsked([start, end, ...shown]), sorts: [{ field: start.key, direction: "asc" }] });
  return { records, isCut, colors };
}

/** Moves a span, or one of its ends; it does not become shorter than `least` seconds. */
function moved({ from, to }, part, by, least) {
  if (part === "start") return { from: Math.min(from + by, to - least), to };
  if (part === "end") return { from, to: Math.max(to + by, from + least) };
  return { from: from + by, to: to + by };
}

/** The subject of a move: an event as a whole, or one of its ends. */
export class Calendar {
  constructor(store) {
    this.store = store;
    this.state = shallowReactive({ held: null, problem: "", adding: null, listed: null, most: 2 });
    this.root = ref(null);
    /** The lanes of whole days before an event was held. */
    this.lanes = 0;
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

  get mayAdd() {
    return facts.canWrite && isWritten(this.start);
  }

  /** Weeks and days have hours where events have a time. */
  get isHourly() {
    return ["week", "day"].includes(this.store.place.mode) && isMoment(this.start);
  }

  /** The time of a record; null without one. Without an end it takes an hour where hours are shown. */
  timeOf(record) {
    const { start, end } = this;
    const value = valueOf(record, start);
    if (!value) return null;
    const from = stampOf(start, value);
    const endValue = end && valueOf(record, end);
    const until = endValue ? stampOf(end, endValue) : from;
    const isAllDay = !isMoment(start) || (endValue ? !isMoment(end) || until - from >= DAY : from === midnight(from));
    const to = this.isHourly && !isAllDay && !endValue ? from + HOUR : Math.max(from, until);
    return { from, to, isAllDay, hasEnd: Boolean(endValue) };
  }

  /** The event as it is while it is held, with its days and the time at which it begins. */
  spanOf(record) {
    const { held } = this.state;
    const time = held?.record.id === record.id ? held : this.timeOf(record);
    if (!time) return null;
    const { from, to, isAllDay } = time;
    // What ends at midnight is not there on the day that begins then.
    const last = dayOf(to > from && isMoment(this.end) ? to - 1 : to);
    return { from, to, isAllDay, first: dayOf(from), last, time: isMoment(this.start) ? clockText(from) : "" };
  }

  textOf(record) {
    const { from, to, isAllDay, first, last } = this.spanOf(record);
    if (this.isHourly && !isAllDay) return `${wholeDay(first)}, ${clockText(from)} to ${clockText(to)}`;
    return `${wholeDay(first)}${last > first ? ` to ${wholeDay(last)}` : ""}`;
  }

  hold(record, part, byKeys = false) {
    const origin = this.timeOf(record);
    Object.assign(this.state, { held: { record, part, byKeys, ...origin, origin, isStretched: part === "end" }, problem: "" });
  }

  /** Moves what is held by seconds from where it was, or by keys from where it is. */
  shift(by, { part = this.state.held?.part, since = this.state.held?.origin } = {}) {
    const { held } = this.state;
    if (!held) return;
    const least = this.isHourly && !since.isAllDay ? QUARTER : 0;
    const place = moved(since, part, by, least);
    const isAllDay = since.isAllDay;
    if (place.from === held.from && place.to === held.to && isAllDay === held.isAllDay) return;
    this.state.held = { ...held, ...place, isAllDay, isStretched: held.isStretched || part === "end" };
  }

  /** An event of hours becomes one of a whole day, or the other way round. */
  turn(isAllDay, at) {
    const { held } = this.state;
    if (held.part !== "whole" || (held.hasEnd && !isMoment(this.end))) return;
    const from = isAllDay ? midnight(at) : at;
    const length = isAllDay ? (held.hasEnd ? DAY : 0) : HOUR;
    if (held.from !== from || held.isAllDay !== isAllDay) this.state.held = { ...held, from, to: from + length, isAllDay };
  }

  release() {
    this.state.held = null;
  }

  /** The day below a point, and in a column of hours the time: `{ stamp, hasTime }`. */
  placeAt(x, y) {
    const one = document.elementsFromPoint(x, y).find((element) => element.dataset?.day);
    if (!one) return null;
    const day = Date.parse(`${one.dataset.day}T00:00:00Z`) / 1000;
    if (one.dataset.hours === undefined) return { stamp: day, hasTime: false };
    const box = one.getBoundingClientRect();
    const seconds = ((y - box.top) / box.height) * DAY;
    return { stamp: day + Math.min(Math.max(seconds, 0), DAY - QUARTER), hasTime: true };
  }

  /** The values that a drop writes; null when it is where it was. */
  valuesOf({ from, to, hasEnd, origin, isAllDay, isStretched }) {
    const { start, end } = this;
    const isTurned = isAllDay !== origin.isAllDay;
    const values = {};
    if (from !== origin.from || isTurned) values[start.key] = valueAt(start, from);
    if (end && (hasEnd ? to !== origin.to || isTurned : isStretched && to !== origin.to)) values[end.key] = valueAt(end, to);
    return Object.keys(values).length > 0 ? values : null;
  }

  async drop() {
    const { held } = this.state;
    const { record } = held;
    const values = this.valuesOf(held);
    const told = this.textOf(record);
    this.release();
    if (!values) return;
    const before = { ...record.data };
    Object.assign(record.data, values);
    try {
      await this.store.during(() => writeRecord(record, values));
      written(this.store, `Move of ${record.title || "Untitled"}`, { changes: Object.entries(values).map(([key, after]) => ({ id: record.id, key, before: before[key] ?? null, after })) });
      this.store.say(`${record.title || "Untitled"}: ${told}`);
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
    store.say({ month: monthText(day), line: monthText(day), week: `Week of ${wholeDay(weekOf(day))}`, day: wholeDay(day) }[mode]);
  }

  step(by) {
    const { day, mode } = this.store.place;
    return this.go(["month", "line"].includes(mode) ? plusMonths(day, by) : plusDays(day, (mode === "week" ? 7 : 1) * by));
  }

  /** Adds a record at a place, as `adding` has it. */
  async add({ stamp, hasTime }, title) {
    const { store, start } = this;
    try {
      const value = valueAt(start, isMoment(start) && !hasTime && !this.isHourly ? stamp + MORNING : stamp);
      const made = await call("POST", `/v1/databases/${store.database.id}/records`, { data: { title, [start.key]: value } });
      written(store, "New record", { created: [made.id] });
      this.state.adding = null;
      await store.reload();
      store.say(`${title} added on ${wholeDay(dayOf(stamp))}${hasTime ? `, ${clockText(stamp)}` : ""}`);
    } catch (error) {
      this.state.problem = error.message;
    }
  }

  /** Handles a key on an event; true when it did something. */
  key(event, record) {
    const { held } = this.state;
    if (event.key === " " && this.mayMove && !held) {
      this.hold(record, "whole", true);
      this.store.say(`${record.title || "Untitled"} grabbed. Move with the arrow keys${this.end ? ", change its end with Shift and the arrow keys" : ""}, drop with Space, cancel with Escape.`);
    } else if (!held) return false;
    else if (event.key === " " || event.key === "Enter") this.drop();
    else if (event.key === "Escape") this.release();
    else if (event.key.startsWith("Arrow")) {
      this.arrow(event);
      this.store.say(this.textOf(record));
    } else return false;
    if (this.state.held) this.focus(record.id);
    return true;
  }

  /** Left and right are days; up and down weeks, or quarters of an hour and the row of whole days above. */
  arrow({ key, shiftKey }) {
    const { held } = this.state;
    const isUp = key === "ArrowUp";
    const sign = isUp || key === "ArrowLeft" ? -1 : 1;
    const part = shiftKey && this.end ? "end" : held.part;
    const isAside = key === "ArrowLeft" || key === "ArrowRight";
    if (!isAside && this.isHourly && part === "whole" && held.isAllDay) {
      if (!isUp) this.turn(false, midnight(held.from) + MORNING);
    } else if (isUp && this.isHourly && part === "whole" && held.from === midnight(held.from)) this.turn(true, held.from);
    else this.shift(sign * (isAside ? DAY : this.isHourly && !held.isAllDay ? QUARTER : 7 * DAY), { part, since: held });
  }
}

/** A pointer takes an event, or one of its ends. */
export function grab(calendar, pressed, record, part) {
  if (!calendar.mayMove || calendar.state.held?.byKeys) return;
  const from = calendar.placeAt(pressed.clientX, pressed.clientY);
  pressed.stopPropagation();
  if (!from) return;
  followPointer(pressed, {
    element: pressed.currentTarget, scroller: calendar.root.value.querySelector(".hours-scroll") ?? calendar.root.value, ghost: false,
    over: (x, y) => {
      const place = calendar.placeAt(x, y);
      if (!calendar.state.held) calendar.hold(record, part);
      if (!place) return;
      if (place.hasTime === from.hasTime) calendar.shift(Math.round((place.stamp - from.stamp) / QUARTER) * QUARTER);
      else calendar.turn(!place.hasTime, Math.floor(place.stamp / QUARTER) * QUARTER);
    },
    drop: () => calendar.drop(), cancel: () => calendar.release(),
  });
}
