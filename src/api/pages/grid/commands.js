// The commands of a table: each changes records, fields or the view, and can be undone.

import { parse, written } from "./clipboard.js";
import { Edits, cellKey } from "./edits.js";
import { valuesOf } from "./heads.js";
import { copied, MOST_CELLS, plan } from "./paste.js";
import { Selection } from "./selection.js";
import { isSame, isWritten, LANGUAGE, OPTIONS, passing, read, textOf, valueOf } from "./values.js";

const { computed, shallowReactive, shallowRef, watch } = Vue;

/** Columns of a table without a view that says which. */
const FIRST_COLUMNS = 40;
const WIDTHS = { title: 260, long_text: 240, rich_text: 240, json: 200, checkbox: 92, number: 120, currency: 130, percent: 100, rating: 120, date: 124, datetime: 164, time: 92, duration: 100, relation: 190, multi_select: 190, url: 200, email: 200 };
export const countOf = (count) => `${count.toLocaleString(LANGUAGE)} ${count === 1 ? "record" : "records"}`;

/** The order, the widths and the hidden columns of a view. */
function layoutOf(fields, view) {
  const usable = fields.filter((one) => one.kind !== "button");
  const listed = view?.manifest.fields ?? [];
  const known = new Map(usable.map((one) => [one.key, one]));
  const shown = listed.length > 0 ? listed.filter((one) => one.visible !== false && known.has(one.key)).map((one) => one.key) : usable.slice(0, FIRST_COLUMNS).map((one) => one.key);
  return {
    order: ["title", ...shown.filter((key) => key !== "title")],
    widths: Object.fromEntries(listed.filter((one) => one.width).map((one) => [one.key, one.width])),
    frozen: view?.manifest.frozenFields ?? 1,
  };
}

export class Table {
  constructor({ store, source, names, history, me, groupingOf, keepFolded }) {
    Object.assign(this, { store, names, history, records: source, groupingOf, keepFolded });
    this.layout = shallowReactive(layoutOf(store.fields, store.view));
    this.columns = computed(() => this.layout.order.map((key) => store.fields.find((one) => one.key === key)).filter(Boolean));
    this.frozen = computed(() => (this.page.isNarrow ? 0 : Math.min(this.layout.frozen, this.columns.value.length)));
    this.page = shallowReactive({ isNarrow: false, beside: null, field: null, isConverted: false, paste: null, bulk: null, find: null, said: "", isFault: false, isLocal: false });
    this.edits = new Edits({ records: source, fieldOf: (key) => store.fields.find((one) => one.key === key), names, me });
    this.chosen = new Selection(source, this.columns);
    this.selection = this.chosen.at;
    this.range = this.chosen.range;
    this.checked = this.chosen.checked;
    this.aim = shallowRef(null);
    this.hits = shallowRef(new Set());
    watch([source.rows, this.columns], () => this.fit(), { flush: "sync" });
  }

  /** Stay at the same records after others came or went. */
  fit() {
    this.chosen.fit();
    const { page, records } = this;
    if (page.beside === null) return;
    const at = records.at(page.besideId);
    if (at >= 0) page.beside = at;
    else if (page.beside >= records.list.length) page.beside = null;
  }

  say(text, isFault = false) { Object.assign(this.page, { said: text, isFault }); }

  /** Tell what went wrong; what is no refusal of the API is an error of ours. */
  fail(error) {
    if (error.status === undefined) throw error;
    this.say(error.message, true);
  }

  /** Do something whose act goes to the history. */
  async run(work) {
    this.say("");
    try {
      return await this.history.follow(work());
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  /* Selection. */

  select(...place) { this.chosen.select(...place); }
  extend(row, col) { this.chosen.select(row, col, true); }
  move(...step) { this.chosen.move(...step); }
  tab(step) { return this.chosen.tab(step); }
  escape() { this.chosen.escape(); this.hits.value = new Set(); }
  check(...range) { this.chosen.check(...range); }
  checkAll(isOn) { this.chosen.checkAll(isOn); }
  isChecked(row) { return this.checked.has(this.records.list[row]?.id); }
  selectAll() {
    this.select(0, 0);
    this.select(this.records.list.length - 1, this.columns.value.length - 1, true);
  }
  enter() {
    this.chosen.isLeaving = false;
    if (this.selection.row < 0 && this.records.list.length > 0) this.select(0, 0);
  }

  /** True when a text can be typed into the active cell. */
  get takesText() {
    const { field } = this.active;
    return Boolean(field) && this.isTyped(field) && field.kind !== "checkbox";
  }

  get active() {
    const { row, col } = this.selection;
    return { record: this.records.list[row], field: this.columns.value[col] };
  }

  /* Editing one cell. */

  isTyped(field) { return this.store.canWrite && isWritten(field) && field.kind !== "file"; }
  picks(col) { return this.store.canWrite && (OPTIONS.has(this.columns.value[col].kind) || ["person", "relation"].includes(this.columns.value[col].kind)); }

  edit(seed = null) {
    const { record, field } = this.active;
    if (!record || !this.store.canWrite) return;
    if (!isWritten(field)) return this.say(`${field.label} is computed.`);
    if (field.kind === "checkbox") return seed === null ? this.toggle(record, field) : undefined;
    if (field.kind === "file") return this.pickFiles(record, field);
    // What is still to be saved comes back as the API writes it: that is no change of someone else.
    this.seen = this.edits.pending.get(record.id)?.has(field.key) ? undefined : valueOf(record, field);
    Object.assign(this.selection, { toRow: this.selection.row, toCol: this.selection.col, isEditing: true, seed });
  }

  cancelEdit() {
    Object.assign(this.selection, { isEditing: false, seed: null });
    this.focus();
  }

  /** Save what an editor gave, and go on. A text without a value stays in its cell, with the reason. */
  commit(record, field, entry, way) {
    const { seen } = this;
    Object.assign(this.selection, { isEditing: false, seed: null });
    if (way) {
      if (way[0]) this.move(way[0], 0);
      else if (way[1] && !this.tab(way[1])) this.move(0, way[1]);
      this.focus();
    }
    const refused = this.edits.refused.get(cellKey(record.id, field.key));
    const shown = ["date", "datetime"].includes(field.kind) ? textOf(field, valueOf(record, field), this.names) : textOf(field, valueOf(record, field), this.names, { plain: true });
    // An unchanged text is not read anew: it may show less than the value has.
    if (entry.text !== undefined && !refused && entry.text === shown) return;
    const outcome = entry.text === undefined ? { value: entry.value } : read(field, entry.text, this.names);
    if (outcome.problem) this.edits.refuse(record.id, field.key, entry.text, outcome.problem);
    else this.run(() => this.edits.cell(this.records.find(record.id) ?? record, field, outcome.value, entry.text, seen));
  }

  /** Go to the next cell that is not saved. */
  nextRefused() {
    const { row, col } = this.selection;
    const placeOf = (cell) => {
      const [id, key] = cell.split("/");
      return [this.records.at(id), this.columns.value.findIndex((one) => one.key === key)];
    };
    const places = [...this.edits.refused.keys()].map(placeOf).filter((place) => Math.min(...place) >= 0).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    if (places.length === 0) return;
    this.select(...(places.find((one) => one[0] > row || (one[0] === row && one[1] > col)) ?? places[0]));
    this.focus();
  }

  forget(record, field) {
    this.edits.refused.delete(cellKey(record.id, field.key));
    this.focus();
  }

  toggle(record, field) {
    if (!this.store.canWrite) return;
    const value = valueOf(record, field) !== true;
    this.run(() => this.edits.cell(record, field, value));
  }

  space() {
    const { record, field } = this.active;
    if (!record) return;
    if (field.kind === "checkbox" && this.store.canWrite) this.toggle(record, field);
    else this.openBeside(this.selection.row);
  }

  /* The record or field that is open beside the table. */

  openBeside(row) { Object.assign(this.page, { beside: row, besideId: this.records.list[row].id, field: null }); }
  openField(field, isConverted = false) { Object.assign(this.page, { beside: null, field: field.id, isConverted }); }

  async searchRecords(field, text) {
    const filter = text ? { filter: { field: "title", op: "contains", value: text } } : {};
    const page = await this.store.call("POST", `/v1/databases/${field.settings.databaseId}/records/query`, { ...filter, fields: [], limit: 20 });
    return page.records.map((one) => ({ id: one.id, label: one.title, hint: "" }));
  }

  /* Files. */

  pickFiles(record, field) {
    const input = Object.assign(document.createElement("input"), { type: "file", multiple: true });
    input.addEventListener("change", () => this.addFiles(record, field, [...input.files]));
    input.click();
  }

  dropFiles(row, col, files) {
    const field = this.columns.value[col];
    this.select(row, col);
    if (!this.store.canWrite) return;
    if (field.kind !== "file") return this.say("Drop files on a cell of a file field.", true);
    this.addFiles(this.records.list[row], field, files);
  }

  async addFiles(record, field, files) {
    await this.run(async () => {
      this.say(`Uploading ${files.length === 1 ? files[0].name : `${files.length} files`}…`);
      const ids = [];
      for (const file of files) {
        const stored = await this.store.upload(file);
        this.names.files.set(stored.fileId, stored);
        ids.push(stored.fileId);
      }
      const fresh = this.records.find(record.id);
      const act = await this.edits.cell(fresh, field, [...(valueOf(fresh, field) ?? []), ...ids]);
      this.say("");
      return act;
    });
  }

  /* Ranges. */

  rowsIn(range) { return this.records.list.slice(range.top, range.bottom + 1); }
  fieldsIn(range) { return this.columns.value.slice(range.left, range.right + 1); }

  copy(event, isCut = false) {
    const range = this.range.value;
    if (!range) return;
    const { text, html } = written(copied(this.rowsIn(range), this.fieldsIn(range), this.names));
    event.clipboardData.setData("text/plain", text);
    event.clipboardData.setData("text/html", html);
    event.preventDefault();
    if (isCut) this.clear();
  }

  async paste(event) {
    const range = this.range.value;
    if (!range || !this.store.canWrite) return;
    event.preventDefault();
    const files = [...event.clipboardData.files];
    if (files.length > 0 && this.active.field.kind === "file") return this.addFiles(this.active.record, this.active.field, files);
    const cells = parse({ html: event.clipboardData.getData("text/html"), text: event.clipboardData.getData("text/plain") });
    if (cells.length === 0) return;
    if (cells.length * cells[0].length > MOST_CELLS) return this.say(`A paste can have ${MOST_CELLS.toLocaleString()} cells. Import larger tables.`, true);
    try {
      const { list, state, division } = this.records;
      const end = division.stretch(range.top)[1] + 1;
      const planned = await plan({ cells, range, columns: this.columns.value, records: list.slice(0, end), names: this.names, call: this.store.call, canAdd: state.isDone && end === list.length, numberOf: (row) => division.numberOf(row) });
      if (planned.misfits.length > 0) this.page.paste = { plan: planned, range };
      else await this.applyPaste(planned);
    } catch (error) {
      this.fail(error);
    }
  }

  async applyPaste({ changes, creations }) {
    const { row, col } = this.selection;
    for (const one of creations) one.data = { ...this.sharedAt(this.records.list.length - 1), ...one.data };
    const act = await this.run(() => this.edits.many("Paste", changes, creations));
    if (!act) return;
    const rows = new Set([...changes.map((one) => one.id)]).size + creations.length;
    this.say(`Pasted ${countOf(rows)}`);
    // The person may have gone on to another cell meanwhile.
    if (this.selection.row !== row || this.selection.col !== col || this.selection.isEditing) return;
    const keys = changes.map((one) => this.columns.value.findIndex((field) => field.key === one.key));
    this.select(row, col);
    if (rows > 0) this.select(row + rows - 1, Math.max(col, ...keys), true);
  }

  clear() {
    const range = this.range.value;
    if (!range || !this.store.canWrite) return;
    const fields = this.fieldsIn(range).filter(isWritten);
    const changes = this.rowsIn(range).flatMap((record) => fields.map((field) => ({ id: record.id, key: field.key, before: valueOf(record, field), after: Array.isArray(valueOf(record, field)) ? [] : null })));
    for (const { id, key } of changes) this.edits.refused.delete(cellKey(id, key));
    this.run(() => this.edits.many("Clear", changes));
  }

  /** The first row of the range goes to the rows below it; a single row takes the one above. */
  fillDown(range = this.range.value) {
    if (!range || !this.store.canWrite) return;
    const top = range.top === range.bottom ? range.top - 1 : range.top;
    if (top < this.records.division.stretch(range.top)[0]) return;
    const [first, ...rest] = this.rowsIn({ ...range, top });
    const fields = this.fieldsIn(range).filter(isWritten);
    const changes = rest.flatMap((record) => fields.map((field) => ({ id: record.id, key: field.key, before: valueOf(record, field), after: valueOf(first, field) })));
    this.run(() => this.edits.many("Fill down", changes));
  }

  beginFill(event) {
    const { top, bottom, left, right } = this.range.value;
    const last = this.records.division.stretch(top)[1];
    this.aimFill = (row) => { Object.assign(this.selection, { row: top, col: left, toRow: Math.max(Math.min(row, last), bottom), toCol: right }); };
    this.fillTo(event, () => {
      const range = this.range.value;
      const height = bottom - top + 1;
      if (range.bottom === bottom) return;
      const list = this.records.list;
      const fields = this.fieldsIn(range).filter(isWritten);
      const changes = [];
      for (let row = bottom + 1; row <= range.bottom; row += 1) {
        const source = list[top + ((row - top) % height)];
        for (const field of fields) changes.push({ id: list[row].id, key: field.key, before: valueOf(list[row], field), after: valueOf(source, field) });
      }
      this.run(() => this.edits.many("Fill", changes));
    });
  }

  /* Rows. */

  async addBelow() {
    if (!this.store.canWrite) return;
    await this.addAt(this.selection.row + 1, this.sharedAt(Math.max(this.selection.row, 0)));
  }

  async addLast() {
    const { length } = this.records.list;
    if (this.store.canWrite) await this.addAt(length, this.sharedAt(length - 1));
  }

  async addAt(at, data) {
    const act = await this.run(() => this.edits.add([{ data, relations: {} }], at));
    if (!act) return this.focus();
    const row = this.records.at(act.created[0]);
    if (row < 0) this.say("Added a record to a collapsed group");
    else this.select(row, 0);
    this.focus();
  }

  /** The values of a new record beside a row: those that the filter asks for, and those of the group. */
  sharedAt(row) {
    const group = this.records.division.partOf(row)?.group;
    return { ...this.shared, ...(group && row >= 0 ? valuesOf(this, group) : {}) };
  }

  /** The values that the filter asks of all records: a new one has them, and stays in sight. */
  get shared() {
    return passing(this.store.view?.manifest.filter, (key) => this.store.fields.find((one) => one.key === key));
  }

  /** True when not every record of the table is asked for. */
  get isFiltered() {
    const { filter, search } = this.records.query;
    return Boolean(filter || search || this.store.view?.manifest.filter || this.store.view?.manifest.search);
  }

  get picked() { return this.records.list.filter((one) => this.checked.has(one.id)); }

  async duplicate() {
    const copies = this.picked.map((one) => ({ data: { ...one.data, title: one.title }, relations: Object.fromEntries(Object.entries(one.relations).filter(([, ids]) => ids.length > 0)) }));
    const at = Math.max(...this.picked.map((one) => this.records.at(one.id))) + 1;
    if (await this.run(() => this.edits.add(copies, at, `Duplicate ${countOf(copies.length)}`))) this.checked.clear();
  }

  async drop(op) {
    const ids = this.picked.map((one) => one.id);
    const label = `${op === "delete" ? "Delete" : "Archive"} ${countOf(ids.length)}`;
    if (!(await this.run(() => this.edits.drop(ids, op, label)))) return;
    this.checked.clear();
    this.say(`${op === "delete" ? "Deleted" : "Archived"} ${countOf(ids.length)}`);
    this.focus();
  }

  bulkEdit(field = null) { this.page.bulk = { field: field ?? this.active.field ?? this.columns.value[0] }; }

  applyBulk(field, value) {
    const changes = this.picked.map((one) => ({ id: one.id, key: field.key, before: valueOf(one, field), after: value }));
    return this.run(() => this.edits.many(`Edit of ${field.label}`, changes));
  }

  /* Find. */

  find(text) {
    const wanted = text.trim().toLowerCase();
    const places = [];
    const hits = new Set();
    if (wanted) {
      const columns = this.columns.value;
      this.records.list.forEach((record, row) => columns.forEach((field, col) => {
        if (textOf(field, valueOf(record, field), this.names).toLowerCase().includes(wanted)) {
          places.push([row, col]);
          hits.add(cellKey(record.id, field.key));
        }
      }));
    }
    this.hits.value = hits;
    return places;
  }

  isHit(record, field) { return this.hits.value.size > 0 && this.hits.value.has(cellKey(record.id, field.key)); }

  /** Show a view as the bar of the page has changed it. */
  takeView(view) {
    this.store.view = view;
    this.kept = undefined;
    Object.assign(this.layout, layoutOf(this.store.fields, view));
    this.records.grouping = this.groupingOf(view);
    return this.records.reload();
  }

  /* Columns. */

  widthOf(field) { return this.layout.widths[field.key] ?? WIDTHS[field.key === "title" ? "title" : field.kind] ?? 160; }
  resize(field, width) { this.layout.widths = { ...this.layout.widths, [field.key]: Math.round(width) }; }

  /** Keep the layout in the view, as an act. */
  keepLayout(label = "Resize a column") {
    const now = { ...this.layout };
    const before = this.kept ?? layoutOf(this.store.fields, this.store.view);
    if (isSame(now, before)) return null;
    const put = async (layout) => {
      Object.assign(this.layout, layout);
      this.kept = { ...layout };
      await this.store.patchView(this.manifestOf(layout));
    };
    return this.run(async () => {
      await put(now);
      return { label, undo: () => put(before), redo: () => put(now) };
    });
  }

  manifestOf({ order, widths, frozen }) {
    const hidden = this.store.fields.filter((one) => !order.includes(one.key) && one.kind !== "button");
    const entry = (key, visible) => ({ key, visible, ...(widths[key] ? { width: widths[key] } : {}) });
    return { fields: [...order.map((key) => entry(key, true)), ...hidden.map((one) => entry(one.key, false))], frozenFields: frozen };
  }

  arrange(change, label) {
    this.kept ??= { ...this.layout };
    Object.assign(this.layout, change);
    return this.keepLayout(label);
  }

  moveColumn(field, place, keepsFocus = false) {
    const to = Math.min(Math.max(place, 1), this.layout.order.length - 1);
    if (field.key === "title") return;
    const rest = this.layout.order.filter((key) => key !== field.key);
    rest.splice(to, 0, field.key);
    this.arrange({ order: rest }, `Move ${field.label}`);
    if (keepsFocus) Vue.nextTick(() => this.focusHead(to));
  }

  hide(field) { this.arrange({ order: this.layout.order.filter((key) => key !== field.key) }, `Hide ${field.label}`); }
  show(field) { return this.arrange({ order: [...this.layout.order, field.key] }, `Show ${field.label}`); }
  freeze(count) { this.arrange({ frozen: count }, "Freeze columns"); }

  sortOf(field) { return this.records.query.sorts?.find((one) => one.field === field.key)?.direction ?? this.page.sort?.[field.key] ?? null; }
  sort(field, direction) {
    const before = this.records.query.sorts ?? this.store.view?.manifest.sorts;
    const put = async (sorts) => {
      this.page.sort = Object.fromEntries((sorts ?? []).map((one) => [one.field, one.direction]));
      await this.records.reload({ ...this.records.query, sorts });
      await this.store.patchView({ sorts });
    };
    const sorts = [{ field: field.key, direction }];
    return this.run(async () => {
      await put(sorts);
      return { label: `Sort by ${field.label}`, undo: () => put(before), redo: () => put(sorts) };
    });
  }

  renameField(field, label) {
    const put = async (text) => this.store.takeField(await this.store.call("PATCH", `/v1/databases/${this.store.database.id}/fields/${field.id}`, { label: text }));
    return this.run(async () => {
      await put(label);
      return { label: `Rename ${field.label}`, undo: () => put(field.label), redo: () => put(label) };
    });
  }

  /** Raises what the API refuses: the form says it. */
  async createField(body) {
    const field = await this.store.call("POST", `/v1/databases/${this.store.database.id}/fields`, body);
    this.store.takeField(field);
    await this.arrange({ order: [...this.layout.order, field.key] }, `Show ${field.label}`);
    this.say(`Added ${field.label}`);
  }
}
