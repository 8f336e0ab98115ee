// Random edits of a document by the model of the canvas, the same for the same seed.
//
// `(seeds, steps, kinds)` answers what was broken, and the documents that the edits led to.

async (seeds, steps, kinds) => {
  const g = await import("/pages/canvas/graph.js");
  const failures = [];
  const documents = [];

  const begun = () => ({
    graph: {
      nodes: [
        { id: "a b", kind: "transform", config: { output: {} }, mystery: 1 },
        {
          id: "loop", kind: "for_each",
          config: { items: { type: "node", value: "a b.list" }, collect: "inner" },
        },
        {
          id: "inner", kind: "transform",
          config: { output: { n: { type: "expression", value: 'nodes["a b"].list.size()' } } },
        },
      ],
      edges: [
        { id: "edge-1", from: "a b", to: "loop", outcome: "always", odd: true },
        { id: "e", from: "loop", to: "inner", outcome: "item" },
      ],
      variables: { v: 1 }, unknown: { kept: true },
    },
    trigger: { kind: "manual", extra: 2 },
  });

  for (const seed of seeds) {
    let state = seed;
    const random = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    const pick = (all) => all[Math.floor(random() * all.length)];
    const first = begun();
    const history = new g.History(first);
    let clipboard = g.copy(first, ["loop", "inner"]);
    const ids = () => g.nodesOf(history.document).map((one) => one.id);
    const edges = () => g.edgesOf(history.document);
    const some = () => ids().filter(() => random() < 0.3);
    const someNotes = () => g.notesOf(history.document).map(g.keyOfNote).filter(() => random() < 0.4);
    const place = () => ({ x: random() * 1e4 - 5e3, y: random() * 1e4 });
    const changed = (d, change) => {
      const node = g.nodeOf(d, pick(ids()));
      return node ? g.changeNode(d, node.id, { ...node, ...change() }) : d;
    };
    const acts = {
      add: (d) => g.add(d, {
        kind: pick(kinds), title: pick(["HTTP request", "Wait", "Ünï / : code", ""]), position: place(),
        after: random() < 0.5
          ? { from: pick([g.TRIGGER, ...ids()]), outcome: pick(["always", "true", "item"]) } : undefined,
      }).document,
      insert: (d) => g.add(d, {
        kind: pick(kinds), title: "Between",
        into: random() < 0.5 ? { edge: pick(edges())?.id } : { entry: pick(g.entriesOf(d)) },
      }).document,
      connect: (d) => g.connect(d, {
        from: pick([g.TRIGGER, ...ids()]), to: pick(ids()),
        outcome: pick(["always", "failure", "case"]), caseKey: pick([undefined, "x"]),
      }),
      part: (d) => g.disconnect(d, edges().filter(() => random() < 0.2).map((one) => one.id)),
      leave: (d) => g.leave(d, pick(ids())),
      move: (d) => g.move(d, new Map([...some(), ...someNotes(), g.TRIGGER].map((id) => [id, place()]))),
      remove: (d) => g.remove(d, {
        nodes: random() < 0.5 ? some().slice(0, 2) : [],
        edges: edges().filter(() => random() < 0.1).map((one) => one.id),
      }),
      rename: (d) => changed(d, () => ({ id: pick(["a", "x y", "loop", "new-name"]) })),
      label: (d) => changed(d, () => ({ label: `L${random()}` })),
      toggle: (d) => g.toggle(d, some()),
      duplicate: (d) => g.duplicate(d, [...some(), ...someNotes()])?.document ?? d,
      copy: (d) => {
        clipboard = g.copy(d, [...some(), ...someNotes()]);
        return d;
      },
      paste: (d) => g.paste(d, clipboard, { x: 10, y: 10 })?.document ?? d,
      note: (d) => g.addNote(d, place(), { text: pick(["", "why", "</textarea>"]) })?.document ?? d,
      write: (d) => (g.notesOf(d).length > 0
        ? g.changeNote(d, g.keyOfNote(pick(g.notesOf(d))), { text: `T${random()}`, width: random() * 4000, color: pick(g.NOTE_COLORS) }) : d),
      erase: (d) => g.remove(d, { notes: someNotes() }),
      trigger: (d) => g.changeTrigger(d, { kind: "schedule", cron: "0 9 * * *", extra: 2 }),
    };

    const check = (name) => {
      const { document: d } = history;
      const all = ids();
      const named = edges().map((one) => one.id);
      const rules = {
        "two nodes have one id": new Set(all).size !== all.length,
        "an id is refused": all.some((id) => id.length > 64 || /[/:\x00-\x1f]/.test(id)),
        "two notes have one id": new Set(g.notesOf(d).map(g.keyOfNote)).size !== g.notesOf(d).length,
        "there is an empty list of notes": d.graph.notes?.length === 0,
        "two edges have one id": new Set(named).size !== named.length,
        "an edge leads to nothing": edges().some((one) => !all.includes(one.from) || !all.includes(one.to)),
        "an entry is not there": (d.graph.entryNodeIds ?? []).some((id) => !all.includes(id)),
        "there is a cycle": g.forward(d).length !== edges().length,
        "a key is lost": !d.graph.unknown?.kept || d.graph.variables.v !== 1 || d.trigger.extra !== 2,
      };
      for (const [rule, isBroken] of Object.entries(rules)) if (isBroken) failures.push(`${seed} ${name}: ${rule}`);
    };

    for (let step = 0; step < steps; step += 1) {
      const name = random() < 0.15 ? "undo" : random() < 0.1 ? "redo" : pick(Object.keys(acts));
      const kept = history.document;
      const was = JSON.stringify(kept);
      if (name === "undo") history.undo();
      else if (name === "redo") history.redo();
      else history.push(acts[name](kept));
      if (JSON.stringify(kept) !== was) failures.push(`${seed} ${name}: it changed what it was given`);
      check(name);
    }
    documents.push(history.document);
    const last = JSON.stringify(history.document);
    let undone = 0;
    while (history.undo()) undone += 1;
    if (history.document !== first || JSON.stringify(first) !== JSON.stringify(begun())) {
      failures.push(`${seed}: undoing all does not give the first document`);
    }
    for (; undone > 0; undone -= 1) history.redo();
    if (JSON.stringify(history.document) !== last) failures.push(`${seed}: redoing all does not give the last one`);
  }
  return { failures: failures.slice(0, 10), documents };
}
