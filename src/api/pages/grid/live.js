// Changes of others: what is in sight is asked for now and then, and changed in place.

const PAUSE = 3000;
/** Every so many rounds the number of records is asked for, too. */
const COUNTED = 4;
const MOST = 100;

/** Follow the records in sight of a table. `revisions` gives `{id: updatedAt}` of those that are there. */
export function followRecords(table, revisions) {
  const { records, edits } = table;
  let round = 0;

  function inSight() {
    const first = Math.max(0, table.firstSeen() - 10);
    return records.list.slice(first, first + MOST);
  }

  async function look() {
    const seen = inSight();
    if (seen.length === 0) return;
    const now = await revisions(seen.map((one) => one.id));
    // What is being saved is known from its answer.
    if (edits.state.saving > 0) return;
    for (const { id, updatedAt } of seen) {
      const shown = records.find(id);
      if (!shown || shown.updatedAt !== updatedAt || now[id] === updatedAt) continue;
      if (now[id] === undefined) leave(id);
      else await edits.inTurn(async () => edits.take(await records.fresh(id))).catch((error) => { if (error.status !== 404) throw error; });
    }
  }

  /** A record that was deleted leaves, and what one looks at stays where it is. */
  function leave(id) {
    const isAbove = records.at(id) < table.firstSeen();
    records.remove([id]);
    if (isAbove) table.keepPlace(-1);
  }

  async function work() {
    if (!document.hidden) {
      round += 1;
      await look();
      if (round % COUNTED === 0 && edits.state.saving === 0) await records.count();
    }
  }

  const next = () => setTimeout(() => work().catch((error) => { if (error.status === undefined) throw error; }).finally(next), PAUSE);
  next();
}
