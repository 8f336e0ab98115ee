// The selection: one active cell, the range that ends elsewhere, and checked records.

const { computed, shallowReactive } = Vue;

/** The selection of a table of `records` and `columns`: places are row and column from 0. */
export class Selection {
  constructor(records, columns) {
    Object.assign(this, { records, columns });
    this.at = shallowReactive({ row: -1, col: 0, toRow: -1, toCol: 0, isEditing: false, seed: null });
    this.checked = shallowReactive(new Set());
    this.anchor = null;
    this.isLeaving = false;
    this.range = computed(() => {
      const { row, col, toRow, toCol } = this.at;
      return row < 0 ? null : { top: Math.min(row, toRow), bottom: Math.max(row, toRow), left: Math.min(col, toCol), right: Math.max(col, toCol) };
    });
  }

  bound(row, col, [first, last] = [0, this.records.list.length - 1]) {
    return [Math.min(Math.max(row, first), last), Math.min(Math.max(col, 0), this.columns.value.length - 1)];
  }

  select(row, col, isExtended = false) {
    this.isLeaving = false;
    const isRange = isExtended && this.at.row >= 0;
    // A range has no rows in it that are not read.
    const [toRow, toCol] = this.bound(row, col, isRange ? this.records.division.stretch(this.at.row) : undefined);
    if (toRow < 0) return;
    if (isRange) Object.assign(this.at, { toRow, toCol });
    else Object.assign(this.at, { row: toRow, col: toCol, toRow, toCol, isEditing: false, seed: null });
    this.hold();
  }

  /** Move from the active cell, or with shift from the end of the range. */
  move(down, right, isExtended = false) {
    const { row, col, toRow, toCol } = this.at;
    if (isExtended) this.select(toRow + down, toCol + right, true);
    else this.select(row + down, col + right);
  }

  /** The next cell, on the next row at the end of one; false at the last one, where the page takes the key. */
  tab(step) {
    if (this.isLeaving) return false;
    const { row, col } = this.at;
    const width = this.columns.value.length;
    const place = row * width + col + step;
    if (place < 0 || place >= width * this.records.list.length) return false;
    this.select(Math.floor(place / width), place % width);
    return true;
  }

  /** One cell again; from there Tab leaves the table, to what is done with checked rows. Then none is checked. */
  escape() {
    const { row, col, toRow, toCol } = this.at;
    if (row !== toRow || col !== toCol) Object.assign(this.at, { toRow: row, toCol: col });
    else if (this.isLeaving) this.checked.clear();
    else this.isLeaving = true;
  }

  /** Stay at the same record and field after others came or went, and at cells that are there. */
  fit() {
    const { row, col, toRow, toCol } = this.at;
    if (row < 0) return;
    const place = this.records.at(this.activeId);
    const down = place < 0 ? 0 : place - row;
    const column = this.columns.value.findIndex((field) => field.key === this.activeKey);
    const right = column < 0 ? 0 : column - col;
    const [top, left] = this.bound(row + down, col + right);
    const [bottom, end] = this.bound(toRow + down, toCol + right);
    // An editor is of one cell, and ends with its field.
    const isEditing = this.at.isEditing && column >= 0;
    Object.assign(this.at, { row: top, col: left, toRow: bottom, toCol: end, isEditing });
    this.hold();
  }

  /** Remember the record and the field of the active cell. */
  hold() {
    this.activeId = this.records.list[this.at.row]?.id;
    this.activeKey = this.columns.value[this.at.col]?.key;
  }

  check(index, isOn, isRange) {
    const list = this.records.list;
    const from = isRange && this.anchor !== null ? this.anchor : index;
    for (let at = Math.min(from, index); at <= Math.max(from, index); at += 1) {
      if (isOn) this.checked.add(list[at].id);
      else this.checked.delete(list[at].id);
    }
    this.anchor = index;
  }

  checkAll(isOn) {
    this.checked.clear();
    if (isOn) for (const one of this.records.list) this.checked.add(one.id);
  }
}
