// Changes of others: the records in sight are read anew when they changed, in place; others once they
// are in sight.

import { followDatabase } from "/pages/feed.js";
import { recount } from "./heads.js";

const MOST = 100;
const SETTLED = 150;

/**
 * Follow the records of a table. `read(ids)` gives the records that are there, and `revisions(ids)`
 * their `{id: updatedAt}`; `fieldsChanged()` is told of others.
 */
export function followRecords(table, place, { read, revisions, fieldsChanged }) {
  const { records, edits, selection } = table;
  /** Records that were changed, and those that may have been. */
  const changed = new Set();
  const unsure = new Set();

  function inSight(among) {
    const first = Math.max(0, table.firstSeen() - 10);
    return records.list.slice(first, first + MOST).map((one) => one.id).filter((id) => among.has(id));
  }

  async function heard(change) {
    if (change.isUnknown) for (const id of records.places.keys()) unsure.add(id);
    for (const id of change.ids) if (records.at(id) >= 0) changed.add(id);
    if (change.hasFields) await fieldsChanged();
    await look();
    // An edit takes records out of a filter or a group, and into it.
    const isElsewhere = table.isFiltered || records.division.isDivided;
    if ((change.isCounted || (isElsewhere && change.ids.size > 0)) && edits.state.saving === 0) await recount(table);
  }

  async function look() {
    const doubtful = inSight(unsure);
    if (doubtful.length > 0) {
      const now = await revisions(doubtful);
      for (const id of doubtful) {
        unsure.delete(id);
        if (records.find(id) && now[id] !== records.find(id).updatedAt) changed.add(id);
      }
    }
    const due = inSight(changed);
    if (due.length > 0) await edits.between(() => show(due));
  }

  async function show(ids) {
    const now = new Map((await read(ids)).map((one) => [one.id, one]));
    for (const id of ids) {
      const record = now.get(id);
      if (record) edits.take(record);
      else if (isOpen(id)) continue;
      else leave(id);
      changed.delete(id);
    }
  }

  /** An open editor stays, although its record is deleted: saving it says so. */
  const isOpen = (id) => (selection.isEditing && records.at(id) === selection.row) || records.at(id) === table.page.beside;

  /** A record that was deleted leaves, and what one looks at stays where it is. */
  function leave(id) {
    const at = records.at(id);
    if (at < 0) return;
    records.remove([id]);
    if (at < table.firstSeen()) table.keepPlace(-1);
  }

  let timer;
  table.scrolled = () => {
    clearTimeout(timer);
    if (changed.size + unsure.size > 0) timer = setTimeout(() => look().catch((error) => { if (error.status === undefined) throw error; }), SETTLED);
  };
  followDatabase(place, heard);
}
