// Edits of records: each is saved as one batch or one change, and can be undone where it still is as it was left.

import { changeOf, isSame, textOf, valueOf } from "./values.js";

const MOST = 500;
const ROUNDS = 25;
const { shallowReactive } = Vue;

const sentence = (field, message) => `${field.label} ${message}`.replace(/\.?$/, ".");
export const cellKey = (id, key) => `${id}/${key}`;

/**
 * `refused` has what was typed into a cell and not saved: `{text, message}` by the key of the cell.
 * `state` has the number of requests under way.
 */
export class Edits {
  constructor({ records, fieldOf, names, me }) {
    Object.assign(this, { records, fieldOf, names, me });
    this.call = records.call;
    this.refused = shallowReactive(new Map());
    this.state = shallowReactive({ saving: 0 });
    this.pending = new Map();
    /** Records that are not listed, as they were last read. */
    this.known = new Map();
    this.queue = Promise.resolve();
  }

  /** One request after another: each knows the revision that the one before has left. */
  inTurn(work) {
    this.state.saving += 1;
    const turn = this.queue.then(work);
    this.queue = turn.catch(() => {}).then(() => { this.state.saving -= 1; });
    return turn;
  }

  /** Read between two savings, so that nothing older is shown over what was saved. */
  between(work) {
    const turn = this.queue.then(work);
    this.queue = turn.catch(() => {});
    return turn;
  }

  refuse(id, key, text, message, isConflict = false) {
    this.refused.set(cellKey(id, key), { text, message, isConflict });
  }

  /** Show values before they are saved. */
  expect(changes) {
    for (const one of changes) {
      const { id, key, after } = one;
      one.isPending = true;
      const counts = this.pending.get(id) ?? new Map();
      counts.set(key, { value: after, count: (counts.get(key)?.count ?? 0) + 1 });
      this.pending.set(id, counts);
      this.refused.delete(cellKey(id, key));
      this.records.show(id, key, this.fieldOf(key)?.kind === "relation", after);
    }
  }

  settle(changes) {
    for (const change of changes) {
      if (!change.isPending) continue;
      change.isPending = false;
      const counts = this.pending.get(change.id);
      const one = counts?.get(change.key);
      if (!one) continue;
      one.count -= 1;
      if (one.count === 0) counts.delete(change.key);
      if (counts.size === 0) this.pending.delete(change.id);
    }
  }

  /** Take a record of the API, under what is still to be saved of it. */
  take(record) {
    this.records.put(record);
    for (const [key, { value }] of this.pending.get(record.id) ?? []) this.records.show(record.id, key, this.fieldOf(key)?.kind === "relation", value);
  }

  /**
   * Save one cell. Gives the act, or null where nothing was saved: then the cell says why. `text` is
   * what was typed, which stays in a refused cell; `seen` is what the cell had when its editor opened.
   */
  async cell(record, field, value, text, seen = valueOf(record, field)) {
    const before = valueOf(record, field);
    const isOverwritten = this.refused.get(cellKey(record.id, field.key))?.isConflict ?? false;
    if (isSame(seen, value) && !isOverwritten) {
      this.refused.delete(cellKey(record.id, field.key));
      return null;
    }
    if (!isOverwritten && !isSame(before, seen) && !isSame(before, value)) {
      this.refuse(record.id, field.key, text ?? textOf(field, value, this.names), this.conflict(field, before), true);
      return null;
    }
    const change = { id: record.id, key: field.key, before, after: value };
    this.expect([change]);
    return this.inTurn(async () => {
      try {
        const saved = await this.patch(change, field, isOverwritten);
        this.settle([change]);
        this.take(saved);
        return this.act(`Edit of ${field.label}`, { changes: [change] });
      } catch (error) {
        this.settle([change]);
        if (error.status === undefined) throw error;
        await this.withdraw(change, field, text, error);
        return null;
      }
    });
  }

  conflict(field, now) {
    return `Someone else changed this to “${textOf(field, now, this.names) || "nothing"}”. Save again to overwrite.`;
  }

  async patch(change, field, isOverwritten) {
    const path = `/v1/records/${change.id}`;
    const body = changeOf(field, change.after);
    for (let round = 0; ; round += 1) {
      const { updatedAt } = this.records.find(change.id) ?? await this.records.fresh(change.id);
      try {
        return await this.call("PATCH", path, body, { "If-Match": updatedAt });
      } catch (error) {
        if (error.status !== 409 || round >= ROUNDS) throw error;
        const theirs = await this.records.fresh(change.id);
        const now = valueOf(theirs, field);
        this.take(theirs);
        if (isSame(now, change.before) || isSame(now, change.after) || isOverwritten) {
          change.before = now;
          continue;
        }
        throw Object.assign(error, { message: this.conflict(field, now), isConflict: true });
      }
    }
  }

  async withdraw(change, field, text, error) {
    const typed = text ?? textOf(field, change.after, this.names);
    const told = error.details?.find((one) => one.path.includes(field.key))?.message;
    const message = error.isConflict || !told ? error.message : sentence(field, told);
    if (error.status === 404) {
      this.records.remove([change.id]);
      return;
    }
    const fresh = await this.records.fresh(change.id).catch(() => null);
    if (fresh) this.take(fresh);
    else this.records.show(change.id, change.key, field.kind === "relation", change.before);
    this.refuse(change.id, change.key, typed, message, error.isConflict);
  }

  /**
   * Save changes of many cells and new records, each 500 records in one batch. What the API refuses
   * stays in its cells, and the rest is saved. `creations` are `{data, relations}` in order, with the
   * texts of their cells.
   */
  async many(label, changes, creations = []) {
    const wanted = changes.filter((one) => !isSame(one.before, one.after));
    this.expect(wanted);
    return this.inTurn(async () => {
      const act = { changes: [], created: [] };
      try {
        for (const part of this.parts(wanted)) act.changes.push(...await this.update(part, () => true, true));
        for (let at = 0; at < creations.length; at += MOST) act.created.push(...await this.create(creations.slice(at, at + MOST)));
      } finally {
        this.settle(wanted);
        for (const { id } of wanted) if (this.records.find(id)) this.take(this.records.find(id));
      }
      return act.changes.length + act.created.length > 0 ? this.act(label, act) : null;
    });
  }

  /** Changes in groups of whole records, as many as a batch takes. */
  parts(changes) {
    const byRecord = Map.groupBy(changes, (one) => one.id);
    const parts = [];
    for (const [, group] of byRecord) {
      if (parts.length === 0 || parts.at(-1).size === MOST) parts.push({ size: 0, changes: [] });
      parts.at(-1).size += 1;
      parts.at(-1).changes.push(...group);
    }
    return parts.map((one) => one.changes);
  }

  /**
   * Write the changes whose cells `may` be written, which is asked with the value that is there. Gives
   * those that were written, with the values before. `isForced` takes another value than expected.
   */
  async update(changes, may, isForced = false) {
    let rest = changes;
    for (let round = 0; rest.length > 0; round += 1) {
      const groups = [...Map.groupBy(rest, (one) => one.id)];
      const operations = groups.map(([id, cells]) => this.operation(id, cells));
      try {
        const { records } = await this.call("POST", `${this.records.path}/batch`, { operations });
        if (isForced) this.settle(rest);
        records.forEach((one) => {
          if (this.known.has(one.id)) this.known.set(one.id, one);
          this.take(one);
        });
        return rest;
      } catch (error) {
        if (error.status === undefined || round >= ROUNDS) throw error;
        if (error.status === 400) rest = await this.reduced(rest, groups, error, isForced);
        else if (![404, 409].includes(error.status)) throw error;
        else if (groups.length > 1) return this.halves(groups, may, isForced);
        else rest = await this.looked(groups[0][0], rest, may, isForced);
      }
    }
    return [];
  }

  operation(id, cells) {
    const body = { op: "update", recordId: id, expectedUpdatedAt: this.records.find(id)?.updatedAt ?? this.known.get(id)?.updatedAt };
    for (const { key, after } of cells) {
      for (const [part, values] of Object.entries(changeOf(this.fieldOf(key), after))) body[part] = { ...body[part], ...values };
    }
    return body;
  }

  /** A batch is refused whole where one record changed: its halves are tried, so the others are written. */
  async halves(groups, may, isForced) {
    const middle = Math.ceil(groups.length / 2);
    const written = [];
    for (const half of [groups.slice(0, middle), groups.slice(middle)]) {
      written.push(...await this.update(half.flatMap(([, cells]) => cells), may, isForced));
    }
    return written;
  }

  /** The edits that remain after a refusal, which names values. Raises a refusal that names none. */
  async reduced(rest, groups, error, isForced) {
    const named = (error.details ?? []).map((one) => ({ ...one, match: one.path.match(/^operations\.(\d+)(?:\.(?:data|relations)\.([^.]+))?/) })).filter((one) => one.match);
    if (named.length === 0) throw error;
    const isOut = new Set();
    for (const { match, message } of named) {
      const [id, cells] = groups[Number(match[1])];
      for (const one of cells.filter((cell) => match[2] === undefined || cell.key === match[2])) {
        const field = this.fieldOf(one.key);
        isOut.add(one);
        this.refuse(id, one.key, one.text ?? textOf(field, one.after, this.names), sentence(field, message));
      }
    }
    if (isForced) await this.withdrawn(rest.filter((one) => isOut.has(one)));
    return rest.filter((one) => !isOut.has(one));
  }

  /** Show again what is stored in cells that are not written. */
  async withdrawn(changes) {
    this.settle(changes);
    for (const [id] of Map.groupBy(changes, (one) => one.id)) {
      const fresh = await this.read(id);
      if (fresh) this.take(fresh);
    }
  }

  /** A record as it is now; null for one that was deleted. */
  read(id) {
    return this.records.fresh(id).catch((error) => {
      if (error.status === 404) return null;
      throw error;
    });
  }

  /** Read a record that changed meanwhile, and leave out what may not be written over it. */
  async looked(id, cells, may, isForced) {
    const fresh = await this.read(id);
    if (!fresh) {
      this.settle(cells);
      this.records.remove([id]);
      return [];
    }
    this.known.set(id, fresh);
    this.take(fresh);
    const rest = [];
    for (const one of cells) {
      const now = valueOf(fresh, this.fieldOf(one.key));
      if (!may(now, one)) continue;
      if (isForced) one.before = now;
      rest.push(one);
    }
    return rest;
  }

  /** A record as it was last read; null for one that was deleted. */
  async present(id) {
    const record = this.records.find(id) ?? this.known.get(id);
    if (record) return record;
    const fresh = await this.read(id);
    if (fresh) this.known.set(id, fresh);
    return fresh;
  }

  async create(creations, at = this.records.list.length) {
    const operations = creations.map(({ data, relations }) => ({ op: "create", data, relations }));
    for (let round = 0; ; round += 1) {
      try {
        const { records } = await this.call("POST", `${this.records.path}/batch`, { operations });
        this.records.insert(at, records);
        creations.forEach((one, place) => one.refused?.forEach(({ key, text, message }) => this.refuse(records[place].id, key, text, message)));
        return records.map((one) => one.id);
      } catch (error) {
        const named = (error.details ?? []).map((one) => ({ ...one, match: one.path.match(/^operations\.(\d+)\.(data|relations)\.([^.]+)/) })).filter((one) => one.match);
        if (error.status !== 400 || named.length === 0 || round >= ROUNDS) throw error;
        for (const { match: [, place, part, key], message } of named) {
          const one = creations[Number(place)];
          if (operations[place][part]?.[key] === undefined) throw error;
          const field = this.fieldOf(key);
          one.refused = [...(one.refused ?? []), { key, text: one.texts?.[key] ?? textOf(field, operations[place][part][key], this.names), message: sentence(field, message) }];
          delete operations[place][part][key];
        }
      }
    }
  }

  /** Add records at a place. Gives the act. */
  add(creations, at, label = "New record") {
    return this.inTurn(async () => this.act(label, { created: await this.create(creations, at) }));
  }

  /** Delete, archive or restore records, each 500 in one batch. Gives the act. */
  drop(ids, op, label) {
    return this.inTurn(async () => {
      const places = await this.move(ids, op);
      return this.act(label, { dropped: ids, op, places });
    });
  }

  /** Take records out, or bring them back to their `places`. Gives the places that they had. */
  async move(ids, op, places = new Map()) {
    let had = new Map();
    for (let at = 0; at < ids.length; at += MOST) {
      const part = ids.slice(at, at + MOST);
      const records = await this.moved(part, op);
      if (op === "restore") {
        const back = records.map((one) => ({ one, place: places.get(one.id) ?? this.records.list.length })).sort((a, b) => a.place - b.place);
        for (const { one, place } of back) this.records.insert(place, [one]);
      } else had = new Map([...had, ...this.records.remove(part)]);
    }
    return had;
  }

  /** The records of one batch. One that someone else has deleted meanwhile is left out. */
  async moved(ids, op) {
    try {
      return (await this.call("POST", `${this.records.path}/batch`, { operations: ids.map((recordId) => ({ op, recordId })) })).records;
    } catch (error) {
      if (error.status !== 404) throw error;
      if (ids.length === 1) return [];
      const middle = Math.ceil(ids.length / 2);
      return [...await this.moved(ids.slice(0, middle), op), ...await this.moved(ids.slice(middle), op)];
    }
  }

  /** An act of the history. Undone or repeated, it tells what others have changed since. */
  act(label, { changes = [], created = [], dropped = [], op = "delete", places = new Map() }) {
    const swapped = changes.map((one) => ({ ...one, before: one.after, after: one.before }));
    let homes = places;
    const write = async (wanted) => {
      let kept = 0;
      const may = (now, one) => isSame(now, one.before) || (isSame(now, one.after) ? true : (kept += 1, false));
      for (const part of this.parts(wanted)) {
        const fit = [];
        for (const one of part) {
          const field = this.fieldOf(one.key);
          const record = field && await this.present(one.id);
          if (record && may(valueOf(record, field), one)) fit.push(one);
        }
        await this.update(fit, may);
      }
      return kept;
    };
    const take = async (ids) => {
      const mine = [];
      let kept = 0;
      for (const id of ids) {
        const fresh = await this.read(id);
        if (fresh && fresh.updatedByUserId && this.me && fresh.updatedByUserId !== this.me) kept += 1;
        else if (fresh) mine.push(id);
      }
      if (mine.length > 0) homes = new Map([...homes, ...await this.move(mine, "delete")]);
      return kept;
    };
    return {
      label,
      changes,
      created,
      undo: () => this.inTurn(async () => {
        const kept = await write(swapped);
        if (dropped.length > 0) await this.move(dropped, "restore", homes);
        return { kept: kept + (created.length > 0 ? await take(created) : 0) };
      }),
      redo: () => this.inTurn(async () => {
        if (created.length > 0) await this.move(created, "restore", homes);
        if (dropped.length > 0) homes = await this.move(dropped, op);
        return { kept: await write(changes) };
      }),
    };
  }
}
