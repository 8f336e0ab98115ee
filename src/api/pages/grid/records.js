// The records of a table: read in windows as one scrolls, and changed in place.

const { shallowReactive, shallowRef, triggerRef } = Vue;

export const WINDOW = 200;

/** A record as the table keeps it; titles of related records go to the names. */
function kept(record, names) {
  for (const related of Object.values(record.related ?? {})) for (const one of related) names.titles.set(one.id, one.title);
  const { id, title, data, relations, computed, system, archived, updatedAt, updatedByUserId } = record;
  return { id, title, data, relations, computed, system, archived, updatedAt, updatedByUserId };
}

/** `state` has the `total`, whether it `isLoading`, whether all `isDone`, and a `problem`. */
export class Records {
  constructor({ call, databaseId, query, names }) {
    Object.assign(this, { call, path: `/v1/databases/${databaseId}/records`, query, names });
    this.rows = shallowRef([]);
    this.state = shallowReactive({ total: null, isLoading: false, isDone: false, problem: "", totals: {} });
    this.places = new Map();
    this.cursor = null;
    this.turn = 0;
  }

  get list() { return this.rows.value; }

  /** True when all records of the query are listed. */
  get isWhole() { return this.state.isDone && (this.state.total ?? 0) <= this.list.length; }

  at(id) {
    return this.places.get(id) ?? -1;
  }

  find(id) {
    return this.list[this.at(id)];
  }

  ask(body) {
    return this.call("POST", `${this.path}/query`, { ...this.query, limit: WINDOW, ...body });
  }

  /** Read the next window, if there is one. */
  async more() {
    if (this.state.isLoading || this.state.isDone) return;
    const { turn } = this;
    Object.assign(this.state, { isLoading: true, problem: "" });
    try {
      if (this.cursor === null) this.count();
      const page = await this.ask(this.cursor === null ? {} : { cursor: this.cursor });
      if (turn !== this.turn) return;
      this.cursor = page.cursor;
      this.state.isDone = !page.cursor;
      this.append(page.records.map((one) => ({ ...kept(one, this.names), color: page.colors?.[one.id] })));
    } catch (error) {
      if (turn !== this.turn) return;
      if (error.status === undefined) throw error;
      this.state.problem = error.message;
    } finally {
      if (turn === this.turn) this.state.isLoading = false;
    }
  }

  /** Ask for the number of records, and the figures that the query has: a cursor is for one query alone. */
  async count() {
    const { turn } = this;
    const aggregates = [{ op: "count", as: "table_rows" }, ...(this.query.aggregates ?? [])];
    try {
      const { aggregates: { table_rows: total, ...totals } } = await this.ask({ limit: 1, aggregates, groupBy: undefined });
      if (turn === this.turn) Object.assign(this.state, { total, totals });
    } catch (error) {
      // A table is read without its number, too.
      if (error.status === undefined) throw error;
    }
  }

  /** Read all anew; what is seen stays until the first window is there. */
  async reload(query = this.query) {
    const turn = (this.turn += 1);
    this.query = query;
    this.cursor = null;
    const old = this.list.length;
    // The number is of the query before.
    Object.assign(this.state, { total: null, isLoading: false, isDone: false });
    const before = this.list;
    this.isFresh = true;
    await this.more();
    // A later reload has taken over.
    if (turn !== this.turn) return;
    if (this.isFresh && !this.state.problem) this.replace([]);
    this.isFresh = false;
    if (this.state.problem) this.replace(before);
    while (this.list.length < Math.min(old, 5 * WINDOW) && !this.state.isDone && !this.state.problem && turn === this.turn) await this.more();
  }

  replace(rows) {
    this.places = new Map(rows.map((one, at) => [one.id, at]));
    this.rows.value = rows;
  }

  append(records) {
    // The first window of a reload takes the place of what was there.
    if (this.isFresh) {
      this.isFresh = false;
      this.replace(records);
      return;
    }
    const rows = this.list;
    for (const one of records) {
      if (this.places.has(one.id)) continue;
      this.places.set(one.id, rows.length);
      rows.push(one);
    }
    triggerRef(this.rows);
  }

  /** Take a record as the API shows it now; one that is not listed stays out. */
  put(record) {
    const at = this.at(record.id);
    if (at < 0) return;
    this.list[at] = { ...kept(record, this.names), color: this.list[at].color };
    triggerRef(this.rows);
  }

  /** Change what is shown of a record until the API has taken it. */
  show(id, key, isRelation, value) {
    const at = this.at(id);
    if (at < 0) return;
    const record = this.list[at];
    const part = isRelation ? "relations" : "data";
    const values = { ...record[part], [key]: value };
    this.list[at] = key === "title" ? { ...record, title: value ?? "" } : { ...record, [part]: values };
    triggerRef(this.rows);
  }

  insert(at, records) {
    const rows = [...this.list];
    const missing = records.filter((one) => !this.places.has(one.id)).map((one) => kept(one, this.names));
    rows.splice(Math.min(at, rows.length), 0, ...missing);
    if (this.state.total !== null) this.state.total += missing.length;
    this.replace(rows);
  }

  /** Gives the places that the records had, so that they can come back there. */
  remove(ids) {
    const taken = new Set(ids.filter((id) => this.places.has(id)));
    const places = new Map([...taken].map((id) => [id, this.at(id)]));
    if (taken.size > 0) this.replace(this.list.filter((one) => !taken.has(one.id)));
    if (this.state.total !== null) this.state.total -= taken.size;
    return places;
  }

  async fresh(id) {
    return this.call("GET", `/v1/records/${id}`);
  }
}
