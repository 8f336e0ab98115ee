// The records of a table: read in windows as one scrolls, in their groups, and changed in place.

import { Division } from "./groups.js";

const { shallowReactive, shallowRef, triggerRef } = Vue;

export const WINDOW = 200;

/** A record as the table keeps it; titles of related records go to the names. */
function kept(record, names) {
  for (const related of Object.values(record.related ?? {})) for (const one of related) names.titles.set(one.id, one.title);
  const { id, title, data, relations, computed, system, archived, updatedAt, updatedByUserId } = record;
  return { id, title, data, relations, computed, system, archived, updatedAt, updatedByUserId };
}

const both = (one, other) => (one && other ? { and: [one, other] } : one ?? other);

/**
 * `state` has the `total`, whether it `isLoading`, whether all `isDone`, and a `problem`; and `isCut` where there
 * are too many groups to divide the rows. `grouping` has the levels of a division, the paths that are folded, and
 * the summaries. `fields` gives the keys of all fields: copies have the hidden ones, too.
 */
export class Records {
  constructor({ call, databaseId, query, names, grouping = {}, fields }) {
    Object.assign(this, { call, path: `/v1/databases/${databaseId}/records`, query, names, grouping, fields });
    this.rows = shallowRef([]);
    this.state = shallowReactive({ total: null, isLoading: false, isDone: false, problem: "", totals: {}, isCut: false });
    this.places = new Map();
    this.moved = new Set();
    this.turn = 0;
    this.division = new Division();
    this.begin();
  }

  get list() { return this.rows.value; }

  /** True when all records of the query are listed. */
  get isWhole() { return this.state.isDone && (this.state.total ?? 0) <= this.list.length; }

  /** The number of records that came since the list was read. */
  get missing() {
    return this.division.isDivided ? this.division.missing : Math.max(0, this.state.total - this.list.length);
  }

  at(id) {
    return this.places.get(id) ?? -1;
  }

  find(id) {
    return this.list[this.at(id)];
  }

  ask(body) {
    return this.call("POST", `${this.path}/query`, { ...this.query, fields: this.fields?.(), limit: WINDOW, ...body });
  }

  /** A division that takes the place of the shown one once its first window is there. */
  begin() {
    this.coming = new Division(this.grouping.levels, this.grouping.folded);
  }

  /** Read the next window of a group, if there is one; without a group, that of the first which is not read. */
  async more(wanted) {
    if (this.state.isLoading || (this.state.isDone && !this.coming)) return;
    const { turn } = this;
    Object.assign(this.state, { isLoading: true, problem: "" });
    try {
      if (this.coming?.isDivided) await this.tally();
      else if (this.coming) this.count();
      if (turn !== this.turn) return;
      const division = this.coming ?? this.division;
      const group = (division === this.division && wanted) || division.due();
      if (group) await this.read(division, group, turn);
      else this.draw(division);
    } catch (error) {
      if (turn !== this.turn) return;
      if (error.status === undefined) throw error;
      this.state.problem = error.message;
    } finally {
      if (turn === this.turn) this.state.isLoading = false;
    }
  }

  /** One window of a group, or of the small groups from it on. */
  async read(division, group, turn) {
    const groups = division.batch(group, WINDOW);
    const filter = both(this.query.filter, division.filterOf(groups));
    const turns = groups.map((one) => one.turn);
    const page = await this.ask({ groupBy: null, aggregates: null, ...(filter ? { filter } : {}), ...(group.cursor ? { cursor: group.cursor } : {}) });
    if (turn !== this.turn || groups.some((one, at) => one.turn !== turns[at])) return;
    const isFresh = division === this.coming;
    const listed = this.list.length;
    const byPath = new Map(groups.map((one) => [one.path, one]));
    for (const record of page.records) {
      if (!isFresh && this.places.has(record.id)) continue;
      // The filter may find records of other groups.
      byPath.get(division.pathOf(record))?.rows.push({ ...kept(record, this.names), color: page.colors?.[record.id] });
    }
    // Small groups that have grown since they were counted are read no further: the rest is new.
    if (groups.length > 1) for (const one of groups) one.isDone = true;
    else Object.assign(group, { cursor: page.cursor, isDone: !page.cursor });
    this.draw(division, isFresh || division.isDivided ? 0 : listed);
  }

  /** Show a division; the rows before `from` are where they were. */
  draw(division = this.division, from = 0) {
    if (division === this.coming) this.coming = null;
    this.division = division;
    division.arrange();
    const { list } = division;
    if (from === 0) this.places = new Map();
    for (let at = from; at < list.length; at += 1) this.places.set(list[at].id, at);
    this.state.isDone = division.isRead;
    if (this.rows.value === list) triggerRef(this.rows);
    else this.rows.value = list;
  }

  /** Count anew: a table is read without its number, too. */
  async count() {
    await this.tally().catch((error) => { if (error.status === undefined) throw error; });
  }

  /** Ask for the number of records, the figures and the groups: a cursor is for one query alone. */
  async tally() {
    const { turn, grouping } = this;
    const division = this.coming ?? this.division;
    const aggregates = [{ op: "count", as: "table_rows" }, ...(grouping.aggregates ?? []), ...(this.query.aggregates ?? [])];
    const page = await this.ask({ limit: 1, aggregates, groupBy: division.isDivided ? grouping.groupBy : null });
    if (turn !== this.turn) return;
    const { table_rows: total, ...totals } = page.aggregates;
    Object.assign(this.state, { total, totals });
    if (!division.isDivided) return;
    if (page.groupsTruncated) {
      this.coming = new Division();
      this.state.isCut = true;
      return;
    }
    division.take(page.groups);
    if (division === this.division) this.draw();
    else division.arrange();
  }

  /** Read all anew; what is seen stays until the first window is there. */
  async reload(query = this.query) {
    const turn = (this.turn += 1);
    this.query = query;
    const old = this.list.length;
    // The number is of the query before.
    Object.assign(this.state, { total: null, isLoading: false, isDone: false, isCut: false });
    this.begin();
    do await this.more();
    while (turn === this.turn && this.list.length < Math.min(old, 5 * WINDOW) && !this.state.isDone && !this.state.problem);
  }

  /** Take a record as the API shows it now; one that is not listed stays out. */
  put(record) {
    const at = this.at(record.id);
    if (at >= 0) this.write(at, { ...kept(record, this.names), color: this.list[at].color });
  }

  /** Change what is shown of a record until the API has taken it. */
  show(id, key, isRelation, value) {
    const at = this.at(id);
    if (at < 0) return;
    const record = this.list[at];
    const part = isRelation ? "relations" : "data";
    const values = { ...record[part], [key]: value };
    this.write(at, key === "title" ? { ...record, title: value ?? "" } : { ...record, [part]: values });
  }

  /** A record with other values. It goes to their group soon, with all others that are written now. */
  write(at, record) {
    const { division } = this;
    const { group, first } = division.partOf(at);
    const isMoved = division.pathOf(record) !== division.pathOf(this.list[at]);
    group.rows[at - first] = this.list[at] = record;
    triggerRef(this.rows);
    if (!isMoved) return;
    if (this.moved.size === 0) queueMicrotask(() => this.settle());
    this.moved.add(record.id);
  }

  settle() {
    const isMoved = (one) => one && this.division.pathOf(one) !== this.division.partOf(this.at(one.id)).group.path;
    const records = [...this.moved].map((id) => this.find(id)).filter(isMoved);
    this.moved.clear();
    this.division.leave(new Set(records.map((one) => one.id)));
    for (const one of records) this.division.enter(one);
    this.draw();
  }

  insert(at, records) {
    const missing = records.filter((one) => !this.places.has(one.id)).map((one) => kept(one, this.names));
    missing.forEach((one, down) => this.division.enter(one, at + down));
    if (this.state.total !== null) this.state.total += missing.length;
    this.draw();
  }

  /** Gives the places that the records had, so that they can come back there. */
  remove(ids) {
    const taken = new Set(ids.filter((id) => this.places.has(id)));
    const places = new Map([...taken].map((id) => [id, this.at(id)]));
    if (taken.size > 0) {
      this.division.leave(taken);
      this.draw();
    }
    if (this.state.total !== null) this.state.total -= taken.size;
    return places;
  }

  /** Hide the rows of groups, or show them: then they are read as they are now. */
  fold(groups, isFolded) {
    const { folded } = this.division;
    for (const group of groups) {
      if (folded.has(group.path) === isFolded) continue;
      if (isFolded) folded.add(group.path);
      else folded.delete(group.path);
      group.forget();
    }
    this.draw();
  }

  async fresh(id) {
    return this.call("GET", `/v1/records/${id}`);
  }
}
