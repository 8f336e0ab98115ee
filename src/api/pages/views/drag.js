// Dragging with a mouse, a pen or a finger: one way for cards of a board and events of a calendar.

const THRESHOLD = 5;
const EDGE = 48;

/** Scrolls what can be scrolled where the pointer is near its edge. */
function scrollNear(scroller, x, y) {
  const box = scroller.getBoundingClientRect();
  if (x > box.right - EDGE) scroller.scrollLeft += 14;
  else if (x < box.left + EDGE) scroller.scrollLeft -= 14;
  // A box that scrolls down by itself, such as the hours of a day.
  if (scroller.scrollHeight > scroller.clientHeight && y > box.top && y < box.bottom) {
    if (y > box.bottom - EDGE) scroller.scrollTop += 14;
    else if (y < box.top + EDGE) scroller.scrollTop -= 14;
  }
  if (y > window.innerHeight - EDGE) window.scrollBy(0, 14);
  else if (y < EDGE) window.scrollBy(0, -14);
}

/**
 * Follows a pointer from the moment it is pressed on `element`. `over` is called with each place
 * once the pointer has moved, `drop` at the end, `cancel` when Escape or the system ends it. A copy
 * of the element goes with the pointer unless `ghost` is false.
 */
export function followPointer(event, { element, scroller, over, drop, cancel, ghost = true }) {
  if (event.button !== 0 || !event.isPrimary) return;
  const start = { x: event.clientX, y: event.clientY };
  const ending = new AbortController();
  const options = { signal: ending.signal };
  let copy = null;
  let isDragged = false;
  let timer = 0;
  let last = start;
  const begin = () => {
    isDragged = true;
    document.documentElement.classList.add("dragging");
    if (ghost) {
      const box = element.getBoundingClientRect();
      copy = element.cloneNode(true);
      copy.classList.add("drag-ghost");
      copy.setAttribute("aria-hidden", "true");
      copy.inert = true;
      copy.style.width = `${box.width}px`;
      copy.style.left = `${box.left - start.x}px`;
      copy.style.top = `${box.top - start.y}px`;
      document.body.append(copy);
    }
    timer = setInterval(() => {
      scrollNear(scroller, last.x, last.y);
      over(last.x, last.y);
    }, 50);
  };
  const end = () => {
    ending.abort();
    clearInterval(timer);
    copy?.remove();
    document.documentElement.classList.remove("dragging");
    if (isDragged) {
      // The click that follows would open what was dragged.
      const swallow = (click) => { click.preventDefault(); click.stopPropagation(); };
      window.addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => window.removeEventListener("click", swallow, { capture: true }));
    }
  };
  window.addEventListener("pointermove", (move) => {
    last = { x: move.clientX, y: move.clientY };
    if (!isDragged && Math.hypot(last.x - start.x, last.y - start.y) < THRESHOLD) return;
    if (!isDragged) begin();
    move.preventDefault();
    if (copy) copy.style.transform = `translate(${last.x}px, ${last.y}px)`;
    over(last.x, last.y);
  }, options);
  window.addEventListener("pointerup", () => {
    end();
    if (isDragged) drop();
  }, options);
  const stop = () => {
    end();
    cancel();
  };
  window.addEventListener("pointercancel", stop, options);
  window.addEventListener("keydown", (key) => {
    if (key.key !== "Escape") return;
    key.preventDefault();
    key.stopPropagation();
    stop();
  }, { ...options, capture: true });
}
