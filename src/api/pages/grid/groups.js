// The groups that divide the rows of a table, and the lines of the sheet: heads, and the rows below them.
// A table without groups is one group without a head.

const MOST_TEXT = 100;
/** Conditions of groups that are read together: a filter has 64, also those of the view. */
const TOGETHER = 16;
/** Forms with one value. A record whose field holds several would stand in several places. */
const SINGLE = new Set(["text", "number", "boolean", "day", "moment", "time", "option", "user"]);

/** True for a field whose groups divide the rows. */
export const divides = (field) => SINGLE.has(field.form) && field.kind !== "timer";

const DAY = /^\d{4}-\d\d-\d\d/;
const iso = (date) => date.toISOString().slice(0, 10);
const dayIn = (zone) => new Intl.DateTimeFormat("en-CA", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" });

/** The first day of the period that a day lies in. */
export function firstDay(day, granularity) {
  const date = new Date(`${day}T00:00:00Z`);
  switch (granularity) {
    case "week": date.setUTCDate(date.getUTCDate() - (date.getUTCDay() + 6) % 7); break;
    case "month": date.setUTCDate(1); break;
    case "quarter": date.setUTCMonth(date.getUTCMonth() - date.getUTCMonth() % 3, 1); break;
    case "year": date.setUTCMonth(0, 1); break;
    default:
  }
  return iso(date);
}

/** The last day of the period that begins with a day. */
export function lastDay(first, granularity) {
  const date = new Date(`${first}T00:00:00Z`);
  const months = { month: 1, quarter: 3, year: 12 }[granularity];
  if (months) date.setUTCMonth(date.getUTCMonth() + months);
  else date.setUTCDate(date.getUTCDate() + (granularity === "week" ? 7 : 1));
  date.setUTCDate(date.getUTCDate() - 1);
  return iso(date);
}

/** One level of groups: the value that the records of a group have in common, and the filter for it. */
export class Level {
  constructor(field, { granularity = "day", direction = "asc" } = {}, { valueOf, zone }) {
    Object.assign(this, { field, granularity, direction, zone, read: (record) => valueOf(record, field) });
    if (field.form === "moment") this.days = dayIn(zone);
  }

  of(record) {
    const value = this.read(record);
    switch (this.field.form) {
      case "boolean": return value === true;
      case "text": return [...(value ?? "")].slice(0, MOST_TEXT).join("") || null;
      case "day": case "moment": {
        if (!DAY.test(value ?? "")) return null;
        return firstDay(this.days ? this.days.format(new Date(value)) : value.slice(0, 10), this.granularity);
      }
      default: return value ?? null;
    }
  }

  /** The filter for a value. Of a long text and a vast number it finds others, too. */
  condition(value) {
    const { key: field, form } = this.field;
    if (value === null) return { field, op: "is_empty" };
    if (form === "day") return { field, op: "between", value: [value, lastDay(value, this.granularity)] };
    if (form === "moment") return { field, op: "between", value: [value, lastDay(value, this.granularity)], timezone: this.zone };
    if (form === "text" && [...value].length === MOST_TEXT) return { field, op: "starts_with", value };
    // The API takes no integers beyond these in JSON.
    if (value > Number.MAX_SAFE_INTEGER) return { field, op: "gt", value: Number.MAX_SAFE_INTEGER };
    if (value < Number.MIN_SAFE_INTEGER) return { field, op: "lt", value: Number.MIN_SAFE_INTEGER };
    return { field, op: "eq", value };
  }
}

/**
 * A group; without a parent the whole table. One without inner `groups` holds `rows`: those of its records that
 * are read, of `count` in all. `figures` are its summaries.
 */
export class Group {
  constructor(value = null, parent = null) {
    Object.assign(this, { value, parent, depth: parent ? parent.depth + 1 : -1, path: parent ? `${parent.path}/${JSON.stringify(value)}` : "" });
    Object.assign(this, { groups: null, rows: [], count: null, figures: {}, cursor: null, isDone: false, turn: 0 });
  }

  get isHead() { return this.parent !== null; }

  /** The groups from the outermost to this one. */
  get chain() { return this.isHead ? [...this.parent.chain, this] : []; }

  add(count) { for (let one = this; one; one = one.parent) if (one.count !== null) one.count += count; }

  /** Its records are to be read once more, also by a window that is on its way. */
  forget() {
    for (const one of this.groups ?? []) one.forget();
    Object.assign(this, { rows: [], cursor: null, isDone: false, turn: this.turn + 1 });
  }
}

/** `folded` has the paths of the groups whose rows are not shown. */
export class Division {
  constructor(levels = [], folded = new Set()) {
    Object.assign(this, { levels, folded, root: new Group(), parts: [], list: [] });
    if (levels.length > 0) this.root.groups = [];
    this.arrange();
  }

  get isDivided() { return this.levels.length > 0; }

  /** Take the groups as the API counts them. A group whose rows are still shown stays. */
  take(answer, group = this.root) {
    const level = this.levels[group.depth + 1];
    if (!level) return;
    const rest = new Map((group.groups ?? []).map((one) => [one.path, one]));
    const fresh = answer.map((one) => {
      const inner = new Group(one.value, group);
      const known = rest.get(inner.path) ?? inner;
      rest.delete(known.path);
      Object.assign(known, { count: one.count, figures: one.aggregates });
      this.take(one.groups ?? [], known);
      return known;
    });
    group.groups = fresh;
    for (const one of rest.values()) if (this.rowsIn(one).length > 0) this.place(one);
  }

  rowsIn(group) { return group.groups ? group.groups.flatMap((one) => this.rowsIn(one)) : group.rows; }

  /** All groups, also those in folded ones. */
  get heads() {
    const below = (group) => [...(group.isHead ? [group] : []), ...(group.groups ?? []).flatMap(below)];
    return below(this.root);
  }

  /** A group that the API has not counted yet: before the empty one, which is last. */
  place(group) {
    const { groups } = group.parent;
    const last = groups.at(-1);
    groups.splice(last?.value === null && group.value !== null ? groups.length - 1 : groups.length, 0, group);
  }

  pathOf(record) {
    return this.levels.map((level) => `/${JSON.stringify(level.of(record))}`).join("");
  }

  /** The innermost group of a record. It is there afterwards. */
  groupOf(record) {
    return this.levels.reduce((parent, level, depth) => {
      const inner = new Group(level.of(record), parent);
      const known = parent.groups.find((one) => one.path === inner.path);
      if (known) return known;
      Object.assign(inner, { count: 0, groups: depth < this.levels.length - 1 ? [] : null, isDone: true });
      this.place(inner);
      return inner;
    }, this.root);
  }

  /** Take a record in, at a place of the list where it is one of its group. Those of a folded group are not listed. */
  enter(record, at = Infinity) {
    const group = this.groupOf(record);
    group.add(1);
    if (this.isFolded(group)) return;
    const down = at - (this.parts.find((part) => part.group === group && !part.isHead)?.first ?? 0);
    group.rows.splice(down >= 0 ? Math.min(down, group.rows.length) : group.rows.length, 0, record);
  }

  leave(ids) {
    for (const { group, length } of this.parts) {
      if (length === 0) continue;
      group.rows = group.rows.filter((one) => !ids.has(one.id));
      group.add(group.rows.length - length);
    }
  }

  isFolded(group) { return group.chain.some((one) => this.folded.has(one.path)); }

  /** Lay the lines out anew: `parts` are heads and stretches of rows, and `list` has the rows in sight or beyond. */
  arrange() {
    this.parts = [];
    let first = 0;
    let top = 0;
    const visit = (group) => {
      if (group.isHead) {
        this.parts.push({ group, isHead: true, first, length: 0, top, size: 1 });
        top += 1;
        if (this.folded.has(group.path)) return;
      }
      if (group.groups) return group.groups.forEach(visit);
      const length = group.rows.length;
      const size = group.isDone ? length : Math.max(length, group.count ?? 0);
      this.parts.push({ group, isHead: false, first, length, top, size });
      first += length;
      top += size;
    };
    visit(this.root);
    this.lines = top;
    this.list = this.isDivided ? this.parts.flatMap((part) => (part.isHead ? [] : part.group.rows)) : this.root.rows;
  }

  /** The last part that begins at or before a place, by its first row or by its line. */
  partAt(key, place) {
    let [low, high] = [0, this.parts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.parts[middle][key] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The stretch of rows that has a row. */
  partOf(index) {
    let at = this.partAt("first", index);
    while (at > 0 && this.parts[at].length === 0) at -= 1;
    return this.parts[at];
  }

  lineOf(index) {
    const part = this.partOf(index);
    return part ? part.top + index - part.first : index;
  }

  /** The number of a row in its group. */
  numberOf(index) { return index - (this.partOf(index)?.first ?? 0) + 1; }

  /** What a line shows: the head of a `group`, the row of an `index`, or neither where a row is not read. */
  at(line) {
    if (line < 0 || line >= this.lines) return null;
    const part = this.parts[this.partAt("top", line)];
    if (part.isHead) return { group: part.group };
    const down = line - part.top;
    return down < part.length ? { index: part.first + down } : {};
  }

  /** The first row at a line or below it. */
  rowFrom(line) {
    if (this.parts.length === 0) return 0;
    const part = this.parts[this.partAt("top", Math.max(line, 0))];
    return part.first + Math.min(Math.max(line - part.top, 0), part.length);
  }

  /** The first and the last of the rows around a row between which none is unread: ranges end there. */
  stretch(index) {
    let place = this.parts.indexOf(this.partOf(index));
    if (place < 0) return [0, this.list.length - 1];
    let from = place;
    const isWhole = ({ isHead, length, size }) => isHead || length === size;
    while (from > 0 && isWhole(this.parts[from - 1])) from -= 1;
    while (place < this.parts.length - 1 && isWhole(this.parts[place])) place += 1;
    return [this.parts[from].first, this.parts[place].first + this.parts[place].length - 1];
  }

  /** The first group with rows to read between two lines. */
  due(from = 0, to = Infinity) {
    return this.parts.find(({ group, isHead, top, size, length }) => !isHead && !group.isDone && top + length < to && (!group.isHead || top + size > from))?.group;
  }

  /** The groups that are read together with one: the small ones that follow it. */
  batch(group, most) {
    const few = [group];
    if (!this.isDivided) return few;
    let sum = group.count;
    const start = this.parts.findIndex((part) => part.group === group && !part.isHead);
    for (const { group: next, isHead } of this.parts.slice(start + 1)) {
      if (isHead || next.isDone) continue;
      sum += next.count;
      if (group.cursor || next.cursor || sum > most || (few.length + 1) * this.levels.length > TOGETHER) break;
      few.push(next);
    }
    return few;
  }

  /** The filter of the records of some groups; none for a table without groups. */
  filterOf(groups) {
    if (!this.isDivided) return null;
    const one = (group) => {
      const parts = group.chain.map((each, depth) => this.levels[depth].condition(each.value));
      return parts.length === 1 ? parts[0] : { and: parts };
    };
    return groups.length === 1 ? one(groups[0]) : { or: groups.map(one) };
  }

  get isRead() { return !this.parts.some((part) => !part.isHead && !part.group.isDone); }

  /** Records that are counted in groups that are read to their end, and not listed: they came since. */
  get missing() {
    return this.parts.reduce((sum, { group, isHead }) => (isHead || !group.isDone ? sum : sum + Math.max(0, (group.count ?? 0) - group.rows.length)), 0);
  }
}
