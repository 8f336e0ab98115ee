// The grid of records: keys move between cells; Enter, F2 or a double click types into one.

const grid = document.querySelector("[data-grid]");
const cellsOf = (row) => [...row.cells];

function focusable(cell) {
  if (cell) { cell.tabIndex = -1; cell.focus(); }
}

function beside(cell, right, down) {
  const row = cell.parentElement;
  const rows = [...grid.tBodies[0].rows];
  const target = rows[rows.indexOf(row) + down];
  return target?.cells[cell.cellIndex + right];
}

function isTyped(cell) {
  return grid.tHead.rows[0].cells[cell.cellIndex].dataset.typed !== undefined && cell.cellIndex > 0;
}

/** Replace what a cell shows by a form; Escape brings it back. */
async function open(cell) {
  if (!isTyped(cell) || cell.querySelector("form")) return;
  const shown = cell.innerHTML;
  const record = cell.parentElement.dataset.record;
  const key = grid.tHead.rows[0].cells[cell.cellIndex].dataset.key;
  await htmx.ajax("GET", `/records/${record}/cells/${key}`, { target: cell, swap: "innerHTML" });
  const control = cell.querySelector("select, textarea, input:not([type=hidden], [type=checkbox])")
    ?? cell.querySelector("input:not([type=hidden])");
  control?.focus();
  control?.select?.();
  cell.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !cell.querySelector("form")) return;
    event.stopPropagation();
    cell.innerHTML = shown;
    focusable(cell);
  });
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

if (grid) {
  const first = grid.tBodies[0].rows[0]?.cells[1];
  if (first) first.tabIndex = 0;
  grid.addEventListener("dblclick", (event) => {
    const cell = event.target.closest("td");
    if (cell) open(cell);
  });
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td, tbody th");
    if (!cell || cell.querySelector("form")) return;
    const move = MOVES[event.key];
    if (move) {
      const target = beside(cell, ...move);
      if (target) { event.preventDefault(); focusable(target); }
    } else if (event.key === "Enter" || event.key === "F2") {
      if (cell.tagName === "TH" || !isTyped(cell)) return;
      event.preventDefault();
      open(cell);
    }
  });
  // After a value was written its cell has the focus again.
  document.addEventListener("htmx:after:swap", (event) => {
    const cell = event.target.closest?.("td");
    if (cell && grid.contains(cell) && !cell.querySelector("form")) focusable(cell);
  });
}
