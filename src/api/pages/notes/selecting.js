// Whole blocks that are selected: by the mouse over several of them, by keys, and what is done to them.

import { copyBlocks, pasted } from "./paste.js";
import { select, selected } from "./text.js";
import { walk } from "./tree.js";
import { isCommand } from "./writing.js";

/** Keys and the clipboard while whole blocks are selected. */
export function selectionKeys(page) {
  const order = () => [...walk(page.tree.blocks)].map((block) => block.id);
  const chosen = () => page.chosen(null);
  const remove = () => {
    const blocks = chosen();
    page.clearSelection();
    page.acts.remove(blocks);
  };
  const keys = {
    Escape: () => { page.clearSelection(); document.getElementById("note-body").blur(); },
    Enter: () => { const { head } = page; page.clearSelection(); page.focus({ id: head, at: Infinity }); },
    Backspace: () => remove(), Delete: () => remove(),
  };
  const step = (event) => {
    const by = event.key === "ArrowDown" ? 1 : -1;
    const ids = order();
    const next = ids[ids.indexOf(page.head) + by];
    if (event.altKey) {
      if (page.canWrite) page.acts.shift(chosen(), by);
    } else if (next) page.selectBlocks(event.shiftKey ? page.anchor : next, next);
  };
  return {
    onKeydown(event) {
      if (event.target.id !== "note-body" || page.selection.size === 0) return;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event);
      else if (event.key === "Tab" || (isCommand(event) && event.key !== "a") || !(keys[event.key] || event.key === "a")) {
        if (!isCommand(event) && event.key.length === 1) page.clearSelection();
        return;
      } else if (event.key === "a") page.selectBlocks(order()[0], order().at(-1));
      else if (page.canWrite || event.key === "Escape") keys[event.key]();
      event.preventDefault();
    },
    onCopy(event) { if (page.selection.size > 0) copyBlocks(event, chosen()); },
    onCut(event) {
      if (page.selection.size === 0 || !page.canWrite) return;
      copyBlocks(event, chosen());
      remove();
    },
    onPaste(event) {
      if (event.target.id !== "note-body" || page.selection.size === 0 || !page.canWrite) return;
      event.preventDefault();
      const blocks = pasted(event.clipboardData);
      const after = page.tree.find(page.head);
      page.clearSelection();
      if (blocks.length > 0) page.acts.insertAfter(after, blocks);
    },
  };
}

/** The block at a height of the page, also beside its text. */
function blockAt(body, y) {
  const blocks = [...body.querySelectorAll(".note-block")];
  return (blocks.findLast((one) => one.getBoundingClientRect().top <= y) ?? blocks[0])?.dataset.block ?? null;
}

const NEAR = 40;

/**
 * A press that is dragged over several blocks selects them as wholes, and one with Shift those up
 * to it. Within one block the browser selects its text.
 */
export function selectByMouse(page, body) {
  body.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType !== "mouse" || event.target.closest("button, input, textarea, select, a, dialog, .note-handle, .caret-menu, .style-bar, [data-cell]")) return;
    const anchor = blockAt(body, event.clientY);
    if (!anchor) return;
    const known = page.selection.size > 0 ? page.anchor : page.state.focused;
    if (event.shiftKey && known && known !== anchor && page.tree.find(known)) {
      event.preventDefault();
      getSelection().removeAllRanges();
      return void page.selectBlocks(known, anchor);
    }
    if (page.selection.size > 0) page.clearSelection();
    followSelection(page, body, anchor);
  });
}

function followSelection(page, body, anchor) {
  let isWhole = false;
  let place = null;
  const ending = new AbortController();
  const move = (event) => {
    const head = blockAt(body, event.clientY);
    if (!head || (!isWhole && head === anchor)) return;
    if (!isWhole) {
      const element = document.querySelector(`[data-text="${CSS.escape(anchor)}"]`);
      place = document.activeElement === element && element ? { element, ...selected(element) } : null;
      isWhole = true;
      body.classList.add("selecting");
    }
    if (event.clientY < NEAR) window.scrollBy(0, -14);
    else if (event.clientY > window.innerHeight - NEAR) window.scrollBy(0, 14);
    getSelection().removeAllRanges();
    page.selectBlocks(anchor, head);
  };
  const end = () => {
    ending.abort();
    body.classList.remove("selecting");
    if (isWhole) getSelection().removeAllRanges();
  };
  window.addEventListener("pointermove", move, { signal: ending.signal });
  window.addEventListener("pointerup", end, { signal: ending.signal });
  window.addEventListener("pointercancel", end, { signal: ending.signal });
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isWhole) return;
    event.preventDefault();
    event.stopPropagation();
    end();
    page.clearSelection();
    if (place) select(place.element, place.from, place.to);
  }, { signal: ending.signal, capture: true });
}
