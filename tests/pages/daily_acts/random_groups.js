// Random divisions of rows: each row and each head has one line, and each line one of them, whatever is
// folded, read or moved. Gives what does not hold.

async (seeds, steps) => {
  const { Division, Level } = await import("/pages/grid/groups.js");

  function randomOf(seed) {
    let state = seed * 2654435761 % 2 ** 32;
    return (below) => {
      state = (state * 1664525 + 1013904223) % 2 ** 32;
      return Math.floor(state / 2 ** 32 * below);
    };
  }

  const level = (key) => new Level({ key, form: "option", kind: "select" }, {}, { valueOf: (record) => record[key], zone: "UTC" });

  function wrong(division) {
    const faults = [];
    const claim = (holds, what) => { if (!holds) faults.push(what); };
    let heads = 0;
    let unread = 0;
    const rows = [];
    for (let line = 0; line < division.lines; line += 1) {
      const { group, index } = division.at(line);
      if (group) heads += 1;
      else if (index === undefined) unread += 1;
      else {
        claim(index === rows.length, `row ${index} follows row ${rows.length - 1}`);
        claim(division.lineOf(index) === line, `line of ${index}`);
        claim(division.rowFrom(line) === index, `row from ${line}`);
        const part = division.partOf(index);
        claim(division.pathOf(division.list[index]) === part.group.path, `group of ${index}`);
        rows.push(index);
      }
    }
    claim(division.at(-1) === null && division.at(division.lines) === null, "ends");
    claim(rows.length === division.list.length, "all rows have a line");
    claim(heads === division.parts.filter((part) => part.isHead).length, "all heads have a line");
    for (const index of rows) {
      const [first, last] = division.stretch(index);
      claim(first <= index && index <= last, `stretch of ${index}`);
      const between = Array.from({ length: division.lineOf(last) - division.lineOf(first) + 1 }, (_, at) => division.at(division.lineOf(first) + at));
      claim(between.every((one) => one.group || one.index !== undefined), `nothing unread around ${index}`);
      const [before, after] = [first - 1, last + 1].map((at) => (division.list[at] ? division.stretch(at) : null));
      claim(before === null || before[1] === first - 1, `stretch before ${index}`);
      claim(after === null || after[0] === last + 1, `stretch after ${index}`);
    }
    claim((unread > 0) === Boolean(division.parts.some((part) => part.size > part.length && !part.isHead)), "unread lines");
    return faults;
  }

  function play(seed) {
    const below = randomOf(seed);
    const depth = below(3);
    const levels = ["a", "b"].slice(0, depth).map(level);
    const division = new Division(levels);
    const values = ["x", "y", "z", null];
    let made = 0;
    const record = () => ({ id: `r${made += 1}`, a: values[below(4)], b: values[below(4)] });
    const answer = (deep) => (deep === 0 ? [] : values.slice(below(3)).map((value) => ({ value, count: below(6), aggregates: {}, groups: answer(deep - 1) })));
    if (depth > 0) division.take(answer(depth));
    for (let step = 0; step < steps; step += 1) {
      const heads = division.heads;
      const unread = division.due(below(9));
      switch (below(6)) {
        case 0: division.enter(record(), below(division.list.length + 2)); break;
        case 1: division.leave(new Set(division.list.filter(() => below(4) === 0).map((one) => one.id))); break;
        case 2: if (heads.length > 0) {
          const group = heads[below(heads.length)];
          if (division.folded.has(group.path)) division.folded.delete(group.path);
          else division.folded.add(group.path);
          group.forget();
        } break;
        case 3: if (depth > 0) division.take(answer(depth)); break;
        case 4: if (unread) {
          const [a, b] = unread.chain.map((one) => one.value);
          for (let at = below(4); at > 0; at -= 1) unread.rows.push({ ...record(), ...(depth > 0 ? { a } : {}), ...(depth > 1 ? { b } : {}) });
          unread.isDone = below(2) === 0;
        } break;
        default: if (division.list.length > 0) {
          const at = below(division.list.length);
          const one = division.list[at];
          division.leave(new Set([one.id]));
          division.arrange();
          division.enter({ ...one, a: values[below(4)] });
        }
      }
      division.arrange();
      const faults = wrong(division);
      if (faults.length > 0) return [`seed ${seed}, step ${step}: ${faults.slice(0, 3).join("; ")}`];
    }
    return [];
  }

  return seeds.flatMap(play);
}
