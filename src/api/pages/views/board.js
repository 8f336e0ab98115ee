// The board: a column for each option, person or state of a checkbox, and cards that are moved
// between and within columns by mouse, finger or keys.

import { button, Panel } from "./controls.js";
import { followPointer } from "./drag.js";
import { ask, call, facts, fieldsByKey, writeRecord, written } from "./store.js";
import { numberText } from "/pages/words.js";
import { cardFields, cardValues, colorOf, fieldsAsked, loadPeople, needsPeople, people } from "./values.js";
import { aggregateName } from "./settings.js";

const { h, nextTick, ref, shallowReactive, watch } = globalThis.Vue;

const FIRST = 200;
const COLUMN = 50;
const MOST_MEMBERS = 12;
const isMany = (field) => field.form === "options" || field.form === "users";

const stackOf = (store) => fieldsByKey.get(store.view.manifest.stackFieldKey);
const orderOf = (store) => fieldsByKey.get(store.view.manifest.orderFieldKey);
const positionOf = (record, field) => record.data[field.key] ?? null;

/** The columns of a field by the key that groups have for them. */
function columnsOf(field, groups) {
  const counts = new Map(groups.map((group) => [group.key, group]));
  const column = (key, value, title, color) => ({ key, value, title, color: colorOf(color), count: counts.get(key)?.count ?? 0, sums: counts.get(key)?.aggregates ?? {}, cards: [] });
  const none = column("", null, `No ${field.label.toLowerCase()}`, "gray");
  if (field.form === "boolean") {
    const off = column("false", false, "Not checked", "gray");
    off.count += none.count;
    return [off, column("true", true, "Checked", "green")];
  }
  if (field.form === "users") {
    const here = groups.filter((group) => group.key !== "").map((group) => group.value);
    const members = (people.list ?? []).length <= MOST_MEMBERS ? people.list.map((one) => one.id) : [];
    const columns = [...new Set([...here, ...members])].map((id) => column(id, id, people.byId.get(id) ?? "Unknown", "gray"));
    return none.count > 0 ? [none, ...columns] : [...columns, none];
  }
  const known = field.options.map((option) => column(option.key, option.key, option.name, option.color));
  const others = groups.filter((group) => group.key !== "" && !field.options.some((one) => one.key === group.key));
  const columns = [...known, ...others.map((group) => column(group.key, group.value, group.key, "gray"))];
  if (none.count > 0) return [none, ...columns];
  return facts.canWrite ? [...columns, none] : columns;
}

/** The keys of the columns that a record is in. */
function placesOf(record, field) {
  const value = record.data[field.key];
  if (field.form === "boolean") return [String(value === true)];
  const values = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  return values.length > 0 ? values : [""];
}

/** The filter that only the records of a column pass. */
function filterOf(field, column) {
  if (field.form === "boolean") return column.value ? { field: field.key, op: "eq", value: true } : { field: field.key, op: "ne", value: true };
  if (column.value === null) return { field: field.key, op: "is_empty" };
  return isMany(field) ? { field: field.key, op: "has_any", value: [column.value] } : { field: field.key, op: "eq", value: column.value };
}

function asked(store) {
  const [field, order] = [stackOf(store), orderOf(store)];
  const shown = cardFields(store.view, facts.fields, [field.key]);
  return { fields: fieldsAsked([field, order, ...shown]), ...(order ? { sorts: [{ field: order.key, direction: "asc" }] } : {}) };
}

/** The columns with their first cards, and as many as they showed before. */
export async function load(store) {
  const field = stackOf(store);
  if (needsPeople([field, ...cardFields(store.view, facts.fields)])) await loadPeople();
  const page = await ask(store, { ...asked(store), limit: FIRST, groupBy: { field: field.key } });
  const columns = columnsOf(field, page.groups);
  const byKey = new Map(columns.map((column) => [column.key, column]));
  for (const record of page.records) for (const key of placesOf(record, field)) byKey.get(key)?.cards.push(record);
  const shown = new Map((store.columns ?? []).map((column) => [column.key, column.cards.length]));
  const most = (column) => Math.min(Math.max(COLUMN, shown.get(column.key) ?? 0), FIRST);
  const short = columns.filter((column) => column.cards.length < Math.min(column.count, most(column)));
  const colors = await Promise.all(short.map((column) => fill(store, column, most(column))));
  return { columns, records: page.records, colors: Object.assign({}, page.colors, ...colors) };
}

/** Reads more cards of a column. Gives their colors. */
async function fill(store, column, limit) {
  const page = await ask(store, { ...asked(store), limit, filter: filterOf(stackOf(store), column) });
  column.cards = page.records;
  return page.colors;
}

/**
 * The positions that put a card at a place among others: its own alone where there is room, else
 * those of all cards before it, too.
 */
export function positionsFor(cards, index, id, field) {
  const at = (place) => (cards[place] ? positionOf(cards[place], field) : null);
  const [before, after] = [at(index - 1), at(index)];
  if (index === 0) return new Map([[id, after === null ? 1 : after - 1]]);
  if (before !== null && after === null) return new Map([[id, before + 1]]);
  if (before !== null && after > before) {
    const middle = (before + after) / 2;
    if (middle > before && middle < after) return new Map([[id, middle]]);
  }
  const ids = [...cards.slice(0, index).map((one) => one.id), id, ...(after === null ? [] : cards.slice(index).map((one) => one.id))];
  return new Map(ids.map((one, place) => [one, place + 1]));
}

/** The value of the stacked field after a card went from one column to another. */
function valueAfter(record, field, from, to) {
  if (!isMany(field)) return to.value;
  const others = (record.data[field.key] ?? []).filter((one) => one !== from.value && one !== to.value);
  return to.value === null ? others : [...others, to.value];
}

/** A card on its way: where it came from, and where it would be dropped. */
class Board {
  constructor(store) {
    this.store = store;
    this.state = shallowReactive({ held: null, target: null, problem: "", asksOrder: false, adding: null });
    this.root = ref(null);
    watch(() => this.state.held !== null, (isHeld) => (isHeld ? store.hold() : store.release()), { flush: "sync" });
  }

  get columns() {
    return this.store.columns ?? [];
  }

  column(key) {
    return this.columns.find((one) => one.key === key);
  }

  hold(record, column, byKeys = false) {
    const index = column.cards.indexOf(record);
    Object.assign(this.state, { held: { record, from: column.key, index, byKeys }, target: { key: column.key, index }, problem: "", asksOrder: false });
  }

  release() {
    Object.assign(this.state, { held: null, target: null });
  }

  /** The place that is under a point: before the first card whose middle is below it. */
  aim(x, y) {
    const { held } = this.state;
    const sections = [...this.root.value.querySelectorAll("section[data-column]")];
    const section = sections.find((one) => {
      const box = one.getBoundingClientRect();
      return x >= box.left && x <= box.right;
    });
    if (!section || !held) return;
    const key = section.dataset.column;
    const cards = [...section.querySelectorAll("[data-card]")].filter((one) => one.dataset.card !== held.record.id);
    const index = cards.filter((one) => {
      const box = one.getBoundingClientRect();
      return box.top + box.height / 2 < y;
    }).length;
    const { target } = this.state;
    if (target.key !== key || target.index !== index) this.state.target = { key, index };
  }

  /** The cards of a column as they are with the held one where it would be dropped. */
  shown(column) {
    const { held, target } = this.state;
    if (!held || (column.key !== held.from && column.key !== target.key)) return column.cards;
    const cards = column.cards.filter((one) => one.id !== held.record.id);
    return column.key === target.key ? cards.toSpliced(target.index, 0, held.record) : cards;
  }

  /** Writes where the held card was dropped; a refusal puts it back. */
  async drop() {
    const { held, target } = this.state;
    this.release();
    const from = this.column(held.from);
    const to = this.column(target.key);
    if (from === to && target.index === held.index) return;
    const order = orderOf(this.store);
    if (from === to && !order) {
      this.state.asksOrder = true;
      return;
    }
    await this.move(held.record, from, to, order ? target.index : null);
  }

  move(record, from, to, index) {
    return this.store.during(() => this.write(record, from, to, index));
  }

  async write(record, from, to, index) {
    const { store } = this;
    const [field, order] = [stackOf(store), orderOf(store)];
    const before = [[from, from.cards, from.count], [to, to.cards, to.count]];
    const others = to.cards.filter((one) => one.id !== record.id);
    const place = index ?? others.length;
    const positions = order ? positionsFor(others, place, record.id, order) : new Map();
    const values = from === to ? {} : { [field.key]: valueAfter(record, field, from, to) };
    const operations = new Map([[record.id, values], ...[...positions].filter(([id]) => id !== record.id).map(([id]) => [id, {}])]);
    for (const [id, position] of positions) operations.set(id, { ...operations.get(id), [order.key]: position });
    const known = new Map([...to.cards, record].map((one) => [one.id, one]));
    const changes = [...operations].flatMap(([id, data]) => Object.entries(data).map(([key, after]) => ({ id, key, before: known.get(id).data[key] ?? null, after })));
    const changed = (one) => (operations.has(one.id) ? { ...one, data: { ...one.data, ...operations.get(one.id) } } : one);
    if (from !== to) {
      from.cards = from.cards.filter((one) => one.id !== record.id);
      from.count -= 1;
      to.count += others.length === to.cards.length ? 1 : 0;
    }
    to.cards = others.toSpliced(place, 0, record).map(changed);
    try {
      if (operations.size === 1) await writeRecord(record, operations.get(record.id));
      else {
        await call("POST", `/v1/databases/${store.database.id}/records/batch`, { operations: [...operations].map(([recordId, data]) => ({ op: "update", recordId, data })) });
      }
      written(store, `Move of ${record.title || "Untitled"}`, { changes });
      store.say(`${record.title || "Untitled"} moved to ${to.title}, position ${place + 1}`);
    } catch (error) {
      for (const [column, cards, count] of before) Object.assign(column, { cards, count });
      this.state.problem = `${record.title || "Untitled"} was not moved. ${error.message}`;
    }
    this.focus(record.id);
  }

  async more(column) {
    try {
      this.store.colors = { ...this.store.colors, ...await fill(this.store, column, FIRST) };
    } catch (error) {
      this.state.problem = error.message;
    }
  }

  async focus(id) {
    await nextTick();
    this.root.value?.querySelector(`[data-card="${CSS.escape(id)}"] .card-title`)?.focus();
  }

  async add(column, title) {
    const { store } = this;
    const field = stackOf(store);
    const order = orderOf(store);
    const last = order && column.cards.map((one) => positionOf(one, order)).filter((one) => one !== null).at(-1);
    const value = column.value === null ? {} : { [field.key]: isMany(field) ? [column.value] : column.value };
    try {
      const made = await call("POST", `/v1/databases/${store.database.id}/records`, { data: { title, ...value, ...(typeof last === "number" ? { [order.key]: last + 1 } : {}) } });
      written(store, "New record", { created: [made.id] });
      await store.reload();
      store.say(`${title} added to ${column.title}`);
    } catch (error) {
      this.state.problem = error.message;
    }
  }

  /** Makes the field that keeps the order of cards, and orders the view by it. */
  async orderByHand() {
    const { store } = this;
    try {
      const there = facts.fields.find((field) => field.serves.includes("orderFieldKey") && field.label === "Position");
      const field = there ?? await call("POST", `/v1/databases/${store.database.id}/fields`, { label: "Position", kind: "number" });
      await store.patchView({ manifest: { orderFieldKey: field.key, cardFields: cardFields(store.view, facts.fields, [stackOf(store).key]).map((one) => one.key) } });
      globalThis.location.reload();
    } catch (error) {
      this.state.problem = error.message;
    }
  }

  /** Handles a key on a card; true when it did something. */
  key(event, record, column) {
    const { held } = this.state;
    const columns = this.columns;
    const place = columns.indexOf(held ? this.column(this.state.target.key) : column);
    const beside = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const along = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === " " && facts.canWrite && !held) {
      this.hold(record, column, true);
      this.store.say(`${record.title || "Untitled"} grabbed. Move with the arrow keys, drop with Space, cancel with Escape.`);
    } else if ((event.key === " " || event.key === "Enter") && held) this.drop();
    else if (event.key === "Escape" && held) this.release();
    else if (beside && held) this.nudge(columns[place + beside]?.key, 0);
    else if (along && held) this.nudge(this.state.target.key, this.state.target.index + along);
    else if (beside) this.step(columns[place + beside], column.cards.indexOf(record), beside);
    else if (along) this.step(column, column.cards.indexOf(record) + along, 0);
    else return false;
    if (this.state.held) this.focus(record.id);
    return true;
  }

  nudge(key, index) {
    const column = key !== undefined && this.column(key);
    if (!column) return;
    const { held } = this.state;
    const most = column.cards.filter((one) => one.id !== held.record.id).length;
    if (index < 0 || index > most) return;
    this.state.target = { key, index };
    this.store.say(`${column.title}, position ${index + 1} of ${most + 1}`);
  }

  /** Goes to a card, or to the next column that has one. */
  step(column, index, by) {
    for (let at = column; at; at = by ? this.columns[this.columns.indexOf(at) + by] : undefined) {
      const card = at.cards[Math.min(index, at.cards.length - 1)];
      if (card && index >= 0) {
        this.focus(card.id);
        return;
      }
    }
  }
}

function card(board, record, column, shown) {
  const { held } = board.state;
  const title = record.title || "Untitled";
  const grab = (event) => {
    if (!facts.canWrite || board.state.held?.byKeys) return;
    const element = event.currentTarget.closest("[data-card]");
    if (event.pointerType !== "mouse" && !event.target.closest(".handle")) return;
    if (event.target.closest(".view-panel-body, select")) return;
    let isHeld = false;
    followPointer(event, {
      element, scroller: board.root.value,
      over: (x, y) => {
        if (!isHeld) board.hold(record, column);
        isHeld = true;
        board.aim(x, y);
      },
      drop: () => board.drop(), cancel: () => board.release(),
    });
  };
  return h("li", {
    class: ["card tile", { held: held?.record.id === record.id }], key: record.id, "data-card": record.id, "data-color": board.store.colors?.[record.id], onPointerdown: grab,
  }, [
    h("a", {
      href: `/records/${record.id}`, class: "card-title", draggable: false, "aria-describedby": facts.canWrite ? "board-keys" : undefined,
      onKeydown: (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey && board.key(event, record, column)) event.preventDefault(); },
    }, title),
    facts.canWrite ? h(Panel, { name: `move-${record.id}`, label: "⠿", title: `Move ${title}`, small: true, align: "handle" }, { default: ({ close }) => board.columns.map((to) => h("button", {
      type: "button", class: "menu-item", disabled: to.key === column.key, key: to.key,
      onClick: () => {
        close();
        board.move(record, column, to, orderOf(board.store) ? 0 : null);
      },
    }, to.title)) }) : null,
    ...cardValues(shown, record),
  ]);
}

function addition(board, column) {
  const { state } = board;
  if (state.adding !== column.key) {
    return h("button", { type: "button", class: "button subtle small add-card", "aria-label": `Add a record to ${column.title}`, onClick: () => { state.adding = column.key; } }, "+ Add");
  }
  return h("input", {
    type: "text", class: "new-card", maxlength: 2000, "aria-label": `Title of a new record in ${column.title}`, placeholder: "Title, then Enter", autocomplete: "off",
    onVnodeMounted: ({ el }) => el.focus(),
    onKeydown: (event) => {
      if (event.key === "Escape") state.adding = null;
      if (event.key !== "Enter" || !event.target.value.trim()) return;
      event.preventDefault();
      const title = event.target.value.trim();
      event.target.value = "";
      board.add(column, title);
    },
    onBlur: (event) => { if (!event.target.value) state.adding = null; },
  });
}

function columnSection(board, column, shown) {
  const { store, state } = board;
  const sums = (store.view.manifest.aggregates ?? []).map((one) => [one, column.sums[one.as ?? (one.field ? `${one.op}_${one.field}` : "count")]]).filter(([, value]) => typeof value === "number");
  return h("section", { key: column.key, "data-column": column.key, "aria-label": column.title, class: { aimed: state.target?.key === column.key } }, [
    h("h2", null, [h("span", { class: "option", "data-color": column.color }, column.title), h("span", { class: "count" }, column.count)]),
    ...sums.map(([one, value]) => h("p", { class: "quiet column-sum" }, `${aggregateName(one.op)} ${fieldsByKey.get(one.field)?.label ?? ""}: ${numberText(fieldsByKey.get(one.field), value)}`)),
    h("ul", null, board.shown(column).map((record) => card(board, record, column, shown))),
    column.cards.length < column.count ? button(`Show ${column.count - column.cards.length} more`, () => board.more(column), { class: "small subtle" }) : null,
    facts.canWrite ? addition(board, column) : null,
  ]);
}

export const View = {
  props: ["store"],
  setup(props) {
    const board = new Board(props.store);
    return () => {
      const { store } = props;
      const { state } = board;
      const shown = cardFields(store.view, facts.fields, [store.view.manifest.stackFieldKey, store.view.manifest.orderFieldKey]);
      return h("div", { class: "board-view" }, [
        store.problem || state.problem ? h("p", { class: "alert", role: "alert" }, store.problem || state.problem) : null,
        state.asksOrder ? h("p", { class: "notice order-notice", role: "status" }, [
          "This board has no order of its own. ",
          facts.canEditViews && facts.canEditFields && (facts.canLock || !store.view.locked) ? button("Order cards by hand", () => board.orderByHand(), { class: "small" }) : null,
        ]) : null,
        facts.canWrite ? h("p", { class: "hidden", id: "board-keys" }, "Press Space to move the card with the arrow keys, Enter to open it.") : null,
        h("div", { class: "board", ref: board.root, tabindex: 0, role: "group", "aria-label": store.view.label }, board.columns.map((column) => columnSection(board, column, shown))),
        h("p", { class: "hidden", role: "status", "aria-live": "assertive" }, store.said),
      ]);
    };
  },
};
