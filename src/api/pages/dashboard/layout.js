// The grid of a dashboard: twelve columns, and widgets that never cover each other.

export const COLUMNS = 12;
const [MOST_ROWS, HIGHEST] = [10_000, 100];

export const frameOf = ({ x, y, w, h }) => ({ x, y, w, h });
const meets = (one, other) => one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;
const clamp = (value, low, high) => Math.min(Math.max(Math.round(value), low), high);

/** A frame within the columns. */
export function within({ x, y, w, h }) {
  const width = clamp(w, 1, COLUMNS);
  return { x: clamp(x, 0, COLUMNS - width), y: clamp(y, 0, MOST_ROWS), w: width, h: clamp(h, 1, HIGHEST) };
}

export const inOrder = (widgets) => [...widgets].sort((a, b) => a.y - b.y || a.x - b.x);

/** The frames of all widgets by id, once one has a new frame: those in its way move down. */
export function arranged(widgets, id, frame) {
  const placed = [{ id, ...within(frame) }];
  for (const widget of inOrder(widgets.filter((one) => one.id !== id))) {
    const next = { id: widget.id, ...frameOf(widget) };
    for (let other = placed.find((one) => meets(one, next)); other; other = placed.find((one) => meets(one, next))) next.y = other.y + other.h;
    placed.push(next);
  }
  return new Map(placed.map(({ id: own, ...rest }) => [own, rest]));
}

/** The first free row, where a new widget goes. */
export const below = (widgets) => Math.max(0, ...widgets.map((one) => one.y + one.h));
