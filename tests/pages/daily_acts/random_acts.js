// Random acts of one person, and edits of another, against a platform that a script plays.
// After every undo a cell has what the person found there, unless the other has changed it since.

async (seeds, steps) => {
  const { Edits } = await import("/pages/grid/edits.js");
  const { History } = await import("/pages/grid/history.js");
  const { Records } = await import("/pages/grid/records.js");
  const { Names, valueOf } = await import("/pages/grid/values.js");

  const FIELDS = ["title", "a", "b"].map((key) => ({ key, label: key, kind: "text", options: [], settings: {} }));
  const refused = (status, details = []) => Object.assign(new Error("Refused"), { status, details });

  function randomOf(seed) {
    let state = seed * 2654435761 % 2 ** 32;
    return (below) => {
      state = (state * 1664525 + 1013904223) % 2 ** 32;
      return Math.floor(state / 2 ** 32 * below);
    };
  }

  /** The operations that the table calls, over a map of records. */
  function platform() {
    const records = new Map();
    const trash = new Map();
    let clock = 0;
    const stamp = (record, by) => Object.assign(record, { updatedAt: String((clock += 1)), updatedByUserId: by });
    const create = (data, by) => {
      const record = stamp({ id: `r${records.size + trash.size}`, title: "", data: {}, relations: {}, computed: {}, system: {}, related: {}, archived: false }, by);
      write(record, data, by);
      records.set(record.id, record);
      return record;
    };
    const write = (record, data, by) => {
      if (Object.values(data).includes("refused")) throw refused(400);
      for (const [key, value] of Object.entries(data)) {
        if (key === "title") record.title = value ?? "";
        if (value === null) delete record.data[key];
        else record.data[key] = value;
      }
      stamp(record, by);
    };
    const copy = (record) => structuredClone(record);
    async function call(method, path, body, headers) {
      await null;
      if (path.endsWith("/query")) return { records: [...records.values()].map(copy), cursor: null, aggregates: { table_rows: records.size } };
      if (path.endsWith("/batch")) return batch(body.operations);
      const record = records.get(path.split("/").at(-1));
      if (!record) throw refused(404);
      if (method === "PATCH") {
        if (headers["If-Match"] !== record.updatedAt) throw refused(409);
        write(record, body.data, "me");
      }
      return copy(record);
    }
    function batch(operations) {
      const wrong = (status, test, rest = "") => operations.flatMap((one, at) => (test(one) ? [{ path: `operations.${at}${rest}`, message: "is refused" }] : []));
      const missing = wrong(404, (one) => one.recordId && !(one.op === "restore" ? trash.get(one.recordId) ?? records.get(one.recordId) : records.get(one.recordId)));
      // As the API does: such a refusal has no details.
      if (missing.length > 0) throw refused(404);
      const stale = wrong(409, (one) => one.expectedUpdatedAt && records.get(one.recordId).updatedAt !== one.expectedUpdatedAt);
      if (stale.length > 0) throw refused(409);
      const bad = wrong(400, (one) => one.data?.a === "refused", ".data.a");
      if (bad.length > 0) throw refused(400, bad);
      return { records: operations.map((one) => {
        if (one.op === "create") return copy(create(one.data, "me"));
        if (one.op === "restore") {
          if (trash.has(one.recordId)) { records.set(one.recordId, trash.get(one.recordId)); trash.delete(one.recordId); }
          return copy(records.get(one.recordId));
        }
        const record = records.get(one.recordId);
        if (one.op === "update") write(record, one.data, "me");
        if (one.op === "delete") { records.delete(record.id); trash.set(record.id, record); }
        return copy(record);
      }) };
    }
    return { records, call, create, write };
  }

  async function play(seed) {
    const random = randomOf(seed);
    const server = platform();
    for (let at = 0; at < 6; at += 1) server.create({ title: `t${at}`, a: `a${at}`, b: `b${at}` }, "me");
    const names = new Names();
    const source = new Records({ call: server.call, databaseId: "d", query: {}, names });
    await source.more();
    const fieldOf = (key) => FIELDS.find((one) => one.key === key);
    const edits = new Edits({ records: source, fieldOf, names, me: "me" });
    const faults = [];
    const history = new History((text, isFault) => { if (isFault) faults.push(text); });
    const begin = structuredClone([...server.records.values()]);
    const theirs = new Set();
    const acts = [];
    let number = 0;
    const text = () => (random(12) === 0 ? "refused" : `v${(number += 1)}`);
    const one = () => source.list[random(source.list.length)];
    const run = async (work) => history.push(await work);
    for (let step = 0; step < steps; step += 1) {
      const kind = random(8);
      acts.push(kind);
      if (source.list.length === 0) break;
      if (kind <= 1) {
        const field = FIELDS[random(3)];
        const value = text();
        await run(edits.cell(one(), field, value === "refused" && field.key !== "a" ? "fine" : value)).catch((error) => { if (error.status !== 400) throw error; });
      } else if (kind === 2) {
        const from = random(source.list.length);
        const changes = source.list.slice(from, from + 3).flatMap((record) => ["a", "b"].map((key) => ({ id: record.id, key, before: valueOf(record, fieldOf(key)), after: key === "a" ? text() : `w${(number += 1)}` })));
        await run(edits.many("Paste", changes, random(3) === 0 ? [{ data: { title: `n${(number += 1)}` }, relations: {}, texts: {} }] : []));
      } else if (kind === 3 && source.list.length > 2) await run(edits.drop([one().id], "delete", "Delete"));
      else if (kind === 4) await history.undo();
      else if (kind === 5) await history.redo();
      else if (kind === 6) {
        // Somebody else writes a cell, which this page does not know of.
        const record = [...server.records.values()][random(server.records.size)];
        const field = FIELDS[random(3)];
        server.write(record, { [field.key]: `theirs${(number += 1)}` }, "other");
        theirs.add(`${record.id}/${field.key}`);
      } else await run(edits.add([{ data: { title: `n${(number += 1)}` }, relations: {} }], random(source.list.length + 1)));
    }
    // What is seen is what is stored, but for what others wrote since.
    for (const shown of source.list) {
      const stored = server.records.get(shown.id);
      if (!stored) return `seed ${seed}: ${shown.id} is shown and not stored`;
      for (const field of FIELDS) {
        if (JSON.stringify(valueOf(shown, field)) !== JSON.stringify(valueOf(stored, field)) && !theirs.has(`${shown.id}/${field.key}`)) return `seed ${seed}: ${shown.id}/${field.key} shows ${valueOf(shown, field)} for ${valueOf(stored, field)} after ${acts}`;
      }
    }
    for (let round = 0; history.past.length > 0 && round < 300; round += 1) await history.undo();
    if (history.past.length > 0) return `seed ${seed}: undo stops at ${history.past.at(-1).label}: ${faults.at(-1)}`;
    for (const record of begin) {
      const stored = server.records.get(record.id);
      if (!stored) return `seed ${seed}: ${record.id} did not come back after ${acts}`;
      for (const field of FIELDS) {
        if (theirs.has(`${record.id}/${field.key}`)) continue;
        if (valueOf(stored, field) !== valueOf(record, field)) return `seed ${seed}: ${record.id}/${field.key} is ${valueOf(stored, field)}, was ${valueOf(record, field)} after ${acts}`;
      }
    }
    for (const key of theirs) {
      const [id, name] = key.split("/");
      const stored = server.records.get(id);
      if (stored && stored.updatedByUserId === "other" && !String(valueOf(stored, fieldOf(name))).startsWith("theirs") && !history.future.length) return `seed ${seed}: ${key} lost what someone else wrote`;
    }
    return null;
  }

  const failures = [];
  for (const seed of seeds) {
    const failure = await play(seed).catch((error) => `seed ${seed}: ${error.stack}`);
    if (failure) failures.push(failure);
  }
  return failures;
}
