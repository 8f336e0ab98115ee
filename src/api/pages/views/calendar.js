// The calendar: months, weeks and days of events, which are dragged to other times and stretched,
// with a mouse, a finger or keys.

import { button, Modal } from "./controls.js";
import { clockText, daysBetween, monthText, plusDays, shortDay, stampParts, today, weekdayText, wholeDay } from "./days.js";
import { Hours } from "./hours.js";
import { Calendar, grab, rangeOf } from "./schedule.js";
import { facts } from "./store.js";
import { cardFields, textOf, valueOf } from "./values.js";

export { load } from "./schedule.js";

const { h, onBeforeUnmount, onMounted, watch } = globalThis.Vue;

/** A month has at least these lanes, and at most those that fit into the window. */
const FEWEST = 2;
const LANES_OF_WEEK = 16;
/** Pixels of the head of a week with its line, of a lane, and of what is below the lanes. */
const [HEAD, LANE, FOOT] = [26, 25, 24];
/** Pixels of a day of a timeline, of a letter of a title, and of the widest title that is shown. */
const [DAY_WIDTH, LETTER, WIDEST] = [36, 6.5, 190];
const dayStamp = (day) => Date.parse(`${day}T00:00:00Z`) / 1000;

/** The events of some days in lanes: each in the first one that is free on all of its days, and
    on the `least` days that its title takes. */
export function lanesOf(events, firstDay, count = 7, least = () => 1) {
  const lastDay = plusDays(firstDay, count - 1);
  const taken = [];
  const placed = [];
  const here = events.filter(({ first, last }) => first <= lastDay && last >= firstDay)
    .toSorted((a, b) => a.first.localeCompare(b.first) || daysBetween(b.first, b.last) - daysBetween(a.first, a.last) || a.time.localeCompare(b.time));
  for (const event of here) {
    const from = Math.max(0, daysBetween(firstDay, event.first));
    const to = Math.min(count - 1, daysBetween(firstDay, event.last));
    const days = Array.from({ length: Math.max(to - from + 1, least(event)) }, (_, at) => from + at);
    let lane = 0;
    while (days.some((day) => taken[lane]?.has(day))) lane += 1;
    taken[lane] ??= new Set();
    days.forEach((day) => taken[lane].add(day));
    placed.push({ ...event, from, to, lane, isBefore: event.first < firstDay, isAfter: event.last > lastDay });
  }
  return placed;
}

function link(calendar, record) {
  return h("a", {
    href: `/records/${record.id}`, draggable: false, "aria-describedby": calendar.mayMove ? "calendar-keys" : undefined,
    onKeydown: (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey && calendar.key(event, record)) event.preventDefault(); },
  }, record.title || "Untitled");
}

function eventBar(calendar, { record, from, to, lane, time, isAllDay, isBefore, isAfter }, details) {
  const { state, store } = calendar;
  const edge = (part) => h("span", { class: ["cal-edge", part], onPointerdown: (event) => grab(calendar, event, record, part) });
  return h("div", {
    class: ["cal-event", { held: state.held?.record.id === record.id, before: isBefore, after: isAfter }], key: `${record.id} ${from}`, "data-event": record.id, "data-color": store.colors?.[record.id],
    style: { gridColumn: `${from + 1} / ${to + 2}`, gridRow: `${lane + 2}` }, title: [record.title || "Untitled", ...details(record)].join("\n"),
    onPointerdown: (event) => { if (event.pointerType === "mouse" || calendar.mayMove) grab(calendar, event, record, "whole"); },
  }, [
    time && !isBefore && !(isAllDay && calendar.isHourly) ? h("time", null, time) : null,
    link(calendar, record),
    calendar.mayMove && calendar.end && !isBefore ? edge("start") : null,
    calendar.mayMove && calendar.end && !isAfter ? edge("end") : null,
  ]);
}

function dayCell(calendar, day, column, month) {
  const { state, store } = calendar;
  const { mode } = store.place;
  const adds = () => { state.adding = { stamp: dayStamp(day), hasTime: false }; };
  return h("div", {
    class: ["cal-day", { outside: mode === "month" && day.slice(0, 7) !== month, today: day === today() }], key: day, "data-day": day, style: { gridColumn: `${column + 1}` },
    onDblclick: (event) => { if (calendar.mayAdd && event.target === event.currentTarget) adds(); },
  }, [
    h("span", { class: "cal-number" }, (mode === "month" && day.endsWith("-01")) || mode === "week" || mode === "day" ? shortDay(day) : Number(day.slice(8))),
    calendar.mayAdd ? h("button", { type: "button", class: "cal-add", "aria-label": `Add a record on ${wholeDay(day)}`, onClick: adds }, "+") : null,
  ]);
}

function newEvent(calendar, place) {
  const { state } = calendar;
  const { day } = stampParts(place.stamp);
  const when = `${wholeDay(day)}${place.hasTime ? `, ${clockText(place.stamp)}` : ""}`;
  return h("input", {
    type: "text", class: "cal-new new-card", key: `new ${place.stamp}`, maxlength: 2000, "aria-label": `Title of a new record on ${when}`, placeholder: "Title", autocomplete: "off",
    onVnodeMounted: ({ el }) => el.focus(),
    onKeydown: (event) => {
      if (event.key === "Escape") state.adding = null;
      if (event.key === "Enter" && event.target.value.trim()) {
        event.preventDefault();
        calendar.add(place, event.target.value.trim());
      }
    },
    onBlur: (event) => { if (!event.target.value) state.adding = null; },
  });
}

/** Days that a title is as wide as on a timeline, where it stands beside a short bar. */
const daysOfTitle = ({ record }) => Math.ceil((Math.min((record.title || "Untitled").length * LETTER, WIDEST) + 14) / DAY_WIDTH);

/** Some days in a row, with their events as bars. */
function weekRow(calendar, firstDay, events, { details, count = 7, isWhole = false }) {
  const { state, store } = calendar;
  const { mode, day: placeDay } = store.place;
  const isMonth = mode === "month";
  const most = isWhole ? Infinity : isMonth ? state.most : LANES_OF_WEEK;
  const days = Array.from({ length: count }, (_, at) => plusDays(firstDay, at));
  const placed = lanesOf(events, firstDay, count, isWhole ? daysOfTitle : undefined);
  const hidden = days.map((_, at) => placed.filter((one) => one.lane >= most && one.from <= at && one.to >= at).length);
  const isAdding = (day) => state.adding && !state.adding.hasTime && state.adding.stamp === dayStamp(day);
  const used = Math.max(0, ...placed.map((one) => one.lane + 1));
  // While an event is held, the hours below do not move away from under the pointer.
  if (!state.held) calendar.lanes = used;
  const lanes = Math.max(used, calendar.lanes);
  // CSS has no repetition of none: it would drop the whole value.
  const rows = ["28px", ...Array(lanes).fill("25px"), `${isWhole ? 48 : days.some(isAdding) ? 25 : 8}px`].join(" ");
  const own = isWhole || calendar.isHourly ? { gridTemplateRows: rows } : isMonth ? { gridTemplateRows: `${HEAD - 1}px repeat(${most}, ${LANE}px) ${FOOT}px` } : {};
  return h("div", { class: ["cal-week", { whole: !isMonth }], key: firstDay, style: { gridTemplateColumns: `repeat(${count}, minmax(0, 1fr))`, ...own } }, [
    ...days.map((day, at) => dayCell(calendar, day, at, placeDay.slice(0, 7))),
    ...placed.filter((one) => one.lane < most).map((one) => eventBar(calendar, one, details)),
    ...days.map((day, at) => {
      if (isAdding(day)) return h("div", { class: "cal-adding", key: "adding", style: { gridColumn: `${at + 1}` } }, newEvent(calendar, state.adding));
      if (hidden[at] === 0) return null;
      return h("button", { type: "button", class: "cal-more", key: `more ${day}`, style: { gridColumn: `${at + 1}` }, "aria-label": `${hidden[at]} more on ${wholeDay(day)}`, onClick: () => { state.listed = day; } }, `+${hidden[at]} more`);
    }),
  ]);
}

/** All events of a day, where the month has no room for them. */
function dayList(calendar, events) {
  const { state } = calendar;
  const day = state.listed;
  const close = () => { state.listed = null; };
  const here = lanesOf(events, day, 1);
  return h(Modal, { title: wholeDay(day), name: "day-events", onClose: close }, () => [
    h("ul", { class: "day-events" }, here.map(({ record, time, isBefore }) => h("li", { key: record.id, "data-color": calendar.store.colors?.[record.id] }, [
      time && !isBefore ? h("time", null, time) : null, h("a", { href: `/records/${record.id}` }, record.title || "Untitled"),
    ]))),
    h("div", { class: "buttons" }, [
      button("View week", () => { close(); calendar.go(day, "week"); }), button("Close", close, { class: "primary", autofocus: true }),
    ]),
  ]);
}

/** The lanes of a month that fit between its head and the end of the window. */
function lanesWithin(grid, weeks) {
  const below = Number.parseFloat(getComputedStyle(document.querySelector("main")).paddingBottom);
  const room = window.innerHeight - below - (grid.getBoundingClientRect().top + window.scrollY) - grid.querySelector(".weekdays").offsetHeight - 2;
  return Math.max(FEWEST, Math.floor((room / weeks - HEAD - FOOT) / LANE));
}

/** The row of whole days, and the hours below it. */
function hourGrid(calendar, first, events, given) {
  return [
    h("div", { class: "cal-allday" }, [
      h("span", { class: "quiet" }, "All day"),
      weekRow(calendar, first, events.filter((one) => one.isAllDay), given),
    ]),
    h(Hours, {
      key: `${first} ${given.count}`, calendar, first, count: given.count, events: events.filter((one) => !one.isAllDay),
      given: { shown: given.details, link: (record) => link(calendar, record), newEvent: (place) => newEvent(calendar, place) },
    }),
  ];
}

function bar(calendar, modes) {
  const { day, mode } = calendar.store.place;
  const { first, last } = rangeOf(calendar.store.place);
  const choice = (key, label) => h("button", { type: "button", class: ["button", "small", { primary: mode === key }], "aria-pressed": mode === key, onClick: () => calendar.go(day, key) }, label);
  const title = { month: monthText(day), line: monthText(day), week: `${shortDay(first)} – ${shortDay(last)} ${last.slice(0, 4)}`, day: wholeDay(day) }[mode];
  const name = mode === "line" ? "month" : mode;
  return h("div", { class: "calendar-bar" }, [
    button("‹", () => calendar.step(-1), { "aria-label": `Previous ${name}`, class: "small" }),
    button("Today", () => calendar.go(today()), { class: "small" }),
    button("›", () => calendar.step(1), { "aria-label": `Next ${name}`, class: "small" }),
    h("h2", null, title),
    modes.length > 1 ? h("div", { role: "group", "aria-label": "Range", class: "calendar-bar" }, modes.map(([key, label]) => choice(key, label))) : null,
  ]);
}

const MODES = [["month", "Month"], ["week", "Week"], ["day", "Day"]];

/** A calendar in rows of weeks; or a timeline, with all days of a month side by side. */
const viewOf = (isTimeline) => ({
  props: ["store"],
  setup(props) {
    const calendar = new Calendar(props.store);
    const measure = () => {
      const grid = calendar.root.value?.querySelector(".calendar-grid");
      if (grid && props.store.place.mode === "month") calendar.state.most = lanesWithin(grid, grid.querySelectorAll(".cal-week").length);
    };
    const sizes = new ResizeObserver(measure);
    onMounted(() => sizes.observe(document.documentElement));
    onBeforeUnmount(() => sizes.disconnect());
    watch(() => props.store.place, measure, { flush: "post" });
    if (isTimeline) onMounted(() => {
      const [place, now] = [calendar.root.value, calendar.root.value.querySelector(".cal-day.today")];
      if (now) place.scrollLeft = now.getBoundingClientRect().left - place.getBoundingClientRect().left - place.clientWidth / 2;
    });
    return () => {
      const { store } = props;
      const { state } = calendar;
      const { first, last } = rangeOf(store.place);
      const events = store.records.map((record) => ({ record, ...calendar.spanOf(record) })).filter((one) => one.first);
      const days = daysBetween(first, last) + 1;
      const count = isTimeline ? days : Math.min(7, days);
      const weeks = Array.from({ length: Math.ceil(days / count) }, (_, at) => plusDays(first, count * at));
      const fields = cardFields(store.view, facts.fields, [store.view.manifest.dateFieldKey, store.view.manifest.endDateFieldKey]);
      const details = (record) => fields.map((field) => textOf(field, valueOf(record, field))).filter(Boolean);
      const given = { details, count, isWhole: isTimeline };
      const keys = calendar.isHourly ? "Press Space to move the event with the arrow keys, by a quarter of an hour or a day; Enter to open it." : "Press Space to move the event with the arrow keys, Enter to open it.";
      return h("div", { class: "calendar-view", "data-mode": store.place.mode }, [
        store.problem || state.problem ? h("p", { class: "alert", role: "alert" }, store.problem || state.problem) : null,
        bar(calendar, isTimeline ? [] : MODES),
        calendar.mayMove ? h("p", { class: "hidden", id: "calendar-keys" }, keys) : null,
        h("div", { class: "calendar-scroll", ref: calendar.root, tabindex: 0, role: "group", "aria-label": store.view.label }, h("div", { class: ["card", "calendar-grid", { timeline: isTimeline, hourly: calendar.isHourly, narrow: count === 1 }], style: isTimeline ? { minWidth: `${count * DAY_WIDTH}px` } : undefined }, [
          h("div", { class: "weekdays", "aria-hidden": "true", style: { gridTemplateColumns: `${calendar.isHourly ? "var(--gutter) " : ""}repeat(${count}, minmax(0, 1fr))` } }, [
            calendar.isHourly ? h("span", { key: "gutter" }) : null,
            ...Array.from({ length: count }, (_, at) => h("span", { key: at }, weekdayText(plusDays(first, at)))),
          ]),
          ...(calendar.isHourly ? hourGrid(calendar, first, events, given) : weeks.map((week) => weekRow(calendar, week, events, given))),
        ])),
        store.isCut ? h("p", { class: "quiet" }, `Showing the first ${store.records.length} records of this ${store.place.mode === "line" ? "month" : store.place.mode}`) : null,
        h("p", { class: "hidden", role: "status", "aria-live": "assertive" }, store.said),
        state.listed ? dayList(calendar, events) : null,
      ]);
    };
  },
});

export const View = viewOf(false);
export const Timeline = viewOf(true);
