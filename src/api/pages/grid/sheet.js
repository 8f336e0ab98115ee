// The sheet: a scrolled box that draws the rows in sight, and moves the selection by keys and mouse.

import { Row } from "./cells.js";
import { ColumnHead, NewField } from "./columns.js";
import { countOf } from "./commands.js";
import { figureCell, groupHead } from "./heads.js";

const { computed, h, nextTick, onBeforeUnmount, onMounted, ref, watch } = Vue;

export const ROW = 34;
const HEAD = 34;
export const GUTTER = 72;
const NEW_FIELD = 48;
const SPARE = 12;
/** The rows below what is read at which the next window is asked for. */
const AHEAD = 60;

const isTyping = (event) => event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export const Sheet = {
  props: ["table"],
  setup(props) {
    const { table } = props;
    const { selection, records } = table;
    const box = ref(null);
    const scrolled = ref(0);
    const height = ref(600);
    let resize;

    const lefts = computed(() => {
      let left = GUTTER;
      return table.columns.value.slice(0, table.frozen.value).map((field) => {
        const own = left;
        left += table.widthOf(field);
        return own;
      });
    });
    const frozenEnd = computed(() => GUTTER + table.columns.value.slice(0, table.frozen.value).reduce((sum, field) => sum + table.widthOf(field), 0));
    const template = computed(() => `${GUTTER}px ${table.columns.value.map((field) => `${table.widthOf(field)}px`).join(" ")} ${table.store.canDesign ? NEW_FIELD : 0}px`);
    const wide = computed(() => GUTTER + table.columns.value.reduce((sum, field) => sum + table.widthOf(field), 0) + (table.store.canDesign ? NEW_FIELD : 0));
    /** The path of the head that has the focus: it is drawn wherever one scrolls. */
    const held = ref(null);
    const shown = computed(() => {
      const first = Math.max(0, Math.floor(scrolled.value / ROW) - SPARE);
      return { first, last: records.rows.value && Math.min(records.division.lines, Math.ceil((scrolled.value + height.value) / ROW) + SPARE) };
    });

    function scroll() {
      scrolled.value = box.value.scrollTop;
      fill();
      table.scrolled?.();
    }

    /** Read what is in sight, or soon will be. */
    function fill() {
      if (!box.value || records.state.problem) return;
      const { scrollTop, clientHeight } = box.value;
      const due = records.division.due(scrollTop / ROW, (scrollTop + clientHeight) / ROW + AHEAD);
      if (due || records.coming) records.more(due);
    }
    watch([records.rows, () => records.state.isLoading, () => records.state.isCut], fill, { flush: "post" });

    /** Scroll as little as shows the active cell. */
    function reveal() {
      const one = box.value;
      if (!one || selection.row < 0) return;
      revealLine(records.division.lineOf(selection.row));
      revealColumn(selection.col);
    }
    function revealLine(line) {
      const one = box.value;
      const top = line * ROW;
      if (top < one.scrollTop) one.scrollTop = top;
      else if (top + ROW > one.scrollTop + one.clientHeight - HEAD - 12) one.scrollTop = top + ROW - one.clientHeight + HEAD + 12;
    }
    /** Scroll as little as shows a column beside the frozen ones. */
    function revealColumn(col) {
      if (col < table.frozen.value) return;
      const one = box.value;
      const columns = table.columns.value;
      const left = GUTTER + columns.slice(0, col).reduce((sum, field) => sum + table.widthOf(field), 0);
      const right = left + (columns[col] ? table.widthOf(columns[col]) : NEW_FIELD);
      if (left - frozenEnd.value < one.scrollLeft) one.scrollLeft = left - frozenEnd.value;
      else if (right > one.scrollLeft + one.clientWidth) one.scrollLeft = right - one.clientWidth;
    }
    // A row keeps its line when others before it are read.
    watch([() => records.rows.value && records.division.lineOf(selection.row), () => selection.col], () => nextTick(reveal));
    watch(() => selection.isEditing, (isEditing) => {
      // The keys go to the sheet again, unless the person has gone on elsewhere.
      if (!isEditing && [document.body, null].includes(document.activeElement)) box.value?.focus({ preventScroll: true });
    }, { flush: "post" });

    onMounted(() => {
      resize = new ResizeObserver(() => {
        height.value = box.value.clientHeight;
        fill();
      });
      resize.observe(box.value);
      table.focus = () => box.value?.focus({ preventScroll: true });
      table.focusHead = (col) => {
        const head = box.value.querySelector(`[data-head="${col}"]`);
        if (!head) return;
        head.focus({ preventScroll: true });
        revealColumn(col);
      };
      table.go = go;
      table.keepPlace = (rows) => { box.value.scrollTop += rows * ROW; };
      table.firstSeen = () => records.division.rowFrom(Math.floor((box.value?.scrollTop ?? 0) / ROW));
    });
    onBeforeUnmount(() => resize.disconnect());

    const page = () => Math.max(1, Math.floor(height.value / ROW) - 2);
    const lastCol = () => table.columns.value.length - 1;
    const lastRow = () => records.list.length - 1;

    /** Go to a line: a row is chosen, and a head takes the focus. Above the first one are the heads of columns. */
    function go(line) {
      const place = records.division.at(line);
      if (line < 0) table.focusHead(selection.col);
      else if (place?.group) {
        held.value = place.group.path;
        revealLine(line);
        nextTick(() => box.value.querySelector(`[data-line="${line}"]`)?.focus({ preventScroll: true }));
      } else if (place?.index !== undefined) {
        table.select(place.index, selection.col);
        table.focus();
      }
    }

    function keydown(event) {
      if (event.target !== box.value || event.isComposing) return;
      const isCommand = event.ctrlKey || event.metaKey;
      const handled = isCommand ? command(event) : move(event) || act(event);
      if (handled) {
        event.preventDefault();
        event.stopPropagation();
      }
    }

    function command(event) {
      const key = event.key.toLowerCase();
      const arrow = ARROWS[event.key];
      if (arrow) table.move(arrow[0] * records.list.length, arrow[1] * table.columns.value.length, event.shiftKey);
      else if (event.key === "Home") table.select(0, 0, event.shiftKey);
      else if (event.key === "End") table.select(lastRow(), lastCol(), event.shiftKey);
      else if (key === "a") table.selectAll();
      else if (key === "d") table.fillDown();
      else return false;
      return true;
    }

    function move(event) {
      const arrow = ARROWS[event.key];
      if (arrow && event.altKey) return false;
      if (arrow?.[0] && !event.shiftKey) go(selection.row < 0 ? 0 : records.division.lineOf(selection.row) + arrow[0]);
      else if (arrow) table.move(arrow[0], arrow[1], event.shiftKey);
      else if (event.key === "PageDown") table.move(page(), 0, event.shiftKey);
      else if (event.key === "PageUp") table.move(-page(), 0, event.shiftKey);
      else if (event.key === "Home") table.select(selection.row, 0, event.shiftKey);
      else if (event.key === "End") table.select(selection.row, lastCol(), event.shiftKey);
      else if (event.key === "Tab") return table.tab(event.shiftKey ? -1 : 1);
      else return false;
      return true;
    }

    function act(event) {
      if (event.key === "Escape") table.escape();
      else if (event.key === "F2" || (event.key === "Enter" && !event.shiftKey)) table.edit();
      else if (event.key === "Enter") table.addBelow();
      else if (event.key === "Delete" || event.key === "Backspace") table.clear();
      else if (event.key === " ") event.shiftKey ? table.check(selection.row, !table.isChecked(selection.row), false) : table.space();
      else if (isTyping(event) && (event.key !== "?" || table.takesText)) table.edit(event.key);
      else return false;
      return true;
    }

    /* The mouse: a press chooses, a drag extends, and a second press edits. */
    const placeOf = (event) => {
      const cell = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-col]");
      return cell && box.value.contains(cell) ? [Number(cell.dataset.row), Number(cell.dataset.col)] : null;
    };
    /** The first press on a link chooses its cell; the next one opens it. */
    let opensLinks = false;
    function click(event) {
      if (!event.target.closest(".cell a")) return;
      if (!opensLinks && !event.ctrlKey && !event.metaKey) event.preventDefault();
      table.focus();
    }
    function pointerdown(event) {
      const cell = event.target.closest("[data-col]");
      if (!cell || event.button !== 0 || event.target.closest("input, textarea, select, button, .picker, dialog, .fill-handle, .cell-fault")) return;
      const [row, col] = [Number(cell.dataset.row), Number(cell.dataset.col)];
      const wasActive = selection.row === row && selection.col === col;
      opensLinks = wasActive;
      table.select(row, col, event.shiftKey);
      if (event.pointerType !== "mouse") return;
      const drag = (moved) => {
        const place = placeOf(moved);
        if (place && (place[0] !== selection.toRow || place[1] !== selection.toCol)) table.extend(...place);
      };
      document.addEventListener("pointermove", drag);
      document.addEventListener("pointerup", () => {
        document.removeEventListener("pointermove", drag);
        if (wasActive && !event.shiftKey && selection.toRow === row && selection.toCol === col && table.picks(col)) table.edit();
      }, { once: true });
    }
    table.fillTo = (event, done) => {
      const drag = (moved) => { const place = placeOf(moved); if (place) table.aimFill(place[0]); };
      document.addEventListener("pointermove", drag);
      document.addEventListener("pointerup", () => { document.removeEventListener("pointermove", drag); done(); }, { once: true });
      event.preventDefault();
    };

    /** Where the selection touches a row; null for most. */
    function touchedOf(index) {
      const range = table.range.value;
      if (!range || index < range.top || index > range.bottom) {
        return selection.row === index && selection.isEditing ? { from: -1, to: -2, active: selection.col, isEditing: true, seed: selection.seed, handle: -1 } : null;
      }
      const isMany = range.top !== range.bottom || range.left !== range.right;
      return {
        from: isMany ? range.left : -1,
        to: isMany ? range.right : -2,
        active: selection.row === index ? selection.col : -1,
        isEditing: selection.row === index && selection.isEditing,
        seed: selection.seed,
        handle: index === range.bottom && table.store.canWrite && !selection.isEditing ? range.right : -1,
      };
    }

    function row(index) {
      const record = records.list[index];
      const line = records.division.lineOf(index);
      return h(Row, {
        key: record.id, table, record, index, line, number: records.division.numberOf(index), columns: table.columns.value, lefts: lefts.value, top: line * ROW, touched: touchedOf(index), isChecked: table.checked.has(record.id),
      });
    }

    /** The lines in sight; the active row and a head with the focus are there wherever they are. */
    function lines({ first, last }) {
      const { division } = records;
      const drawn = [];
      const seen = new Set();
      let isUnread = false;
      const draw = (line) => {
        const { group, index } = division.at(line) ?? {};
        seen.add(group?.path ?? index);
        if (group) drawn.push(groupHead(table, group, line, line * ROW));
        else if (index !== undefined) drawn.push(row(index));
        else if (!isUnread) drawn.push(h("p", { key: `unread ${line}`, class: "unread quiet", "aria-hidden": "true", style: { top: `${line * ROW}px` } }, "Loading…"));
        isUnread = !group && index === undefined;
      };
      for (let line = first; line < last; line += 1) draw(line);
      if (selection.row >= 0 && selection.row < division.list.length && !seen.has(selection.row)) draw(division.lineOf(selection.row));
      const head = held.value !== null && !seen.has(held.value) && division.parts.find((part) => part.isHead && part.group.path === held.value);
      if (head) draw(head.top);
      return drawn;
    }

    const drop = (event) => {
      const cell = event.target.closest?.("[data-col]");
      const file = event.dataTransfer?.files?.length > 0;
      if (!cell || !file) return;
      event.preventDefault();
      event.stopPropagation();
      table.dropFiles(Number(cell.dataset.row), Number(cell.dataset.col), [...event.dataTransfer.files]);
    };

    return () => {
      const rows = lines(shown.value);
      const { row: active, col } = selection;
      const columns = table.columns.value;
      const { totals } = records.state;
      const summaries = [...(records.grouping.aggregates ?? []), ...(records.query.aggregates ?? [])];
      return h("div", {
        ref: box, class: "sheet", role: "grid", tabindex: 0, "aria-label": table.store.database.label, "aria-rowcount": records.state.total === null ? -1 : (records.division.isDivided ? records.division.lines : Math.max(records.state.total, records.rows.value.length)) + 1, "aria-colcount": columns.length + 1,
        "aria-multiselectable": "true", "aria-readonly": table.store.canWrite ? undefined : "true", "aria-activedescendant": active >= 0 && !selection.isEditing && active < records.rows.value.length ? `cell-${active}-${col}` : undefined,
        style: { "--columns": template.value, "--wide": `${wide.value}px` },
        onScroll: scroll, onKeydown: keydown, onPointerdown: pointerdown, onClick: click, onDblclick: (event) => { if (event.target.closest("[data-col]") && !event.target.closest(".editor-line, .picker, dialog")) table.edit(); },
        onFocus: () => table.enter(), onFocusin: (event) => { held.value = event.target.dataset.group ?? null; }, onDragover: (event) => { if (event.dataTransfer?.types.includes("Files") && event.target.closest("[data-col]")) event.preventDefault(); }, onDrop: drop,
      }, [
        h("div", { class: "sheet-head", role: "rowgroup" }, h("div", { class: "head-row", role: "row", "aria-rowindex": 1 }, [
          h("div", { class: "gutter frozen", role: "columnheader", "aria-colindex": 1 }, table.store.canWrite ? h("input", {
            type: "checkbox", tabindex: -1, "aria-label": records.isWhole ? `Select all ${countOf(records.list.length)}` : `Select ${countOf(records.list.length)} loaded so far`, checked: table.checked.size > 0 && table.checked.size === records.rows.value.length,
            onClick: (event) => table.checkAll(event.target.checked),
          }) : h("span", { class: "hidden" }, "Number")),
          columns.map((field, at) => h(ColumnHead, { key: field.key, table, field, at, left: lefts.value[at] ?? null })),
          table.store.canDesign ? h(NewField, { table }) : null,
        ])),
        h("div", { class: "sheet-body", role: "rowgroup", style: { height: `${records.division.lines * ROW}px` } }, rows),
        Object.keys(totals).length > 0 ? h("div", { class: "sheet-totals", role: "rowgroup" }, h("div", { class: "head-row", role: "row" }, [
          h("div", { class: "gutter frozen", role: "gridcell" }), columns.map((field, at) => figureCell(summaries, totals, field, { "aria-colindex": at + 2, class: ["group-figure", { frozen: at < lefts.value.length }], style: at < lefts.value.length ? { left: `${lefts.value[at]}px` } : undefined })),
        ])) : null,
      ]);
    };
  },
};

