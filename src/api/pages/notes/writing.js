// A text that is written in: its keys, its shortcuts, what is pasted, and its caret.

import { pasted } from "./paste.js";
import { fromMarkdown, linked, replaced, select, selected, show, sliced, spansOf, textOf, toggled } from "./text.js";
import { beginning, isText, labelOf, newBlock, walk } from "./tree.js";

const { h, onMounted, onUpdated, ref, toRaw } = globalThis.Vue;

const KEYS = { b: "bold", i: "italic", u: "underline", e: "code" };
export const isCommand = (event) => event.ctrlKey || event.metaKey;
const LINE = 6;

/** An element with spans; `onChange(spans)` is told of each key, `onKey(event, place)` of all others first. */
export const RichText = {
  props: ["spans", "label", "placeholder", "isEditable", "kind", "expanded"],
  emits: ["change", "key", "before", "paste", "blur", "focus"],
  setup(props, { emit }) {
    const root = ref(null);
    let shownSpans = null;
    const refresh = () => {
      const spans = toRaw(props.spans) ?? [];
      if (spans === shownSpans || (shownSpans && JSON.stringify(spans) === JSON.stringify(shownSpans))) return;
      const place = document.activeElement === root.value ? selected(root.value) : null;
      show(root.value, spans);
      shownSpans = spans;
      if (place) select(root.value, Math.min(place.from, textOf(spans).length), Math.min(place.to, textOf(spans).length));
    };
    onMounted(refresh);
    onUpdated(refresh);
    const changed = () => {
      const spans = spansOf(root.value);
      shownSpans = spans;
      emit("change", spans, selected(root.value));
    };
    const mark = (event) => {
      const name = KEYS[event.key.toLowerCase()] ?? (event.shiftKey && event.key.toLowerCase() === "s" ? "strikethrough" : null);
      const place = selected(root.value);
      if (!name || !isCommand(event) || event.altKey || !place || place.from === place.to) return false;
      event.preventDefault();
      emit("change", toggled(spansOf(root.value), place.from, place.to, name), place);
      return true;
    };
    return () => h("div", {
      ref: root, class: ["text", { blank: textOf(props.spans) === "" }], "data-placeholder": props.placeholder,
      ...(props.isEditable ? {
        contenteditable: "true", role: "textbox", "aria-multiline": "true", "aria-label": props.label, spellcheck: "true",
        "aria-expanded": undefined, "aria-controls": props.expanded ? "note-menu" : undefined, "aria-activedescendant": props.expanded || undefined,
        onInput: (event) => { if (!event.isComposing) changed(); },
        onCompositionend: changed,
        onKeydown: (event) => {
          if (event.isComposing) return;
          emit("key", event, selected(root.value), root.value);
          if (!event.defaultPrevented) mark(event);
        },
        onBeforeinput: (event) => {
          if (event.inputType.startsWith("format") || event.inputType.startsWith("history") || event.inputType === "insertFromDrop") event.preventDefault();
          emit("before", event, selected(root.value));
        },
        onPaste: (event) => {
          event.preventDefault();
          emit("paste", event, selected(root.value) ?? { from: 0, to: 0 });
        },
        onFocus: () => emit("focus", root.value), onBlur: () => emit("blur"),
      } : {}),
    });
  },
};

/** The rectangle of the caret; that of the element where the browser has none. */
export function caretBox(element) {
  const range = getSelection().rangeCount > 0 ? getSelection().getRangeAt(0).cloneRange() : null;
  range?.collapse(true);
  const box = range?.getClientRects()[0];
  return box ?? element.getBoundingClientRect();
}

const isAtTop = (element) => caretBox(element).top < element.getBoundingClientRect().top + parseFloat(getComputedStyle(element).lineHeight) - LINE;
const isAtBottom = (element) => caretBox(element).bottom > element.getBoundingClientRect().bottom - parseFloat(getComputedStyle(element).lineHeight) + LINE;

/** The keys of a block's text. Gives the handlers of its element. */
export function writer(page, block) {
  const { acts, tree } = page;
  const length = () => textOf(block.content.text).length;

  function neighbour(by) {
    const order = [...walk(tree.blocks)];
    return order[order.findIndex((one) => one.id === block.id) + by];
  }

  function arrows(event, place, element) {
    const isUp = event.key === "ArrowUp";
    const isBack = event.key === "ArrowLeft";
    const isEdge = { ArrowUp: () => isAtTop(element), ArrowDown: () => isAtBottom(element), ArrowLeft: () => place.to === 0, ArrowRight: () => place.from === length() }[event.key];
    if (!isEdge || !isEdge()) return;
    if (event.shiftKey) {
      if (isBack || event.key === "ArrowRight") return;
      event.preventDefault();
      page.selectBlocks(block.id, block.id);
      return;
    }
    if (place.from !== place.to) return;
    const next = neighbour(isUp || isBack ? -1 : 1);
    if (!next) return;
    event.preventDefault();
    page.focus({ id: next.id, at: isUp || isBack ? Infinity : 0 });
  }

  function command(event, place) {
    if (event.key.toLowerCase() === "a" && place.from === 0 && place.to === length()) {
      event.preventDefault();
      page.selectBlocks(tree.blocks[0].id, [...walk(tree.blocks)].at(-1).id);
    } else if (event.key.toLowerCase() === "k" && place.from !== place.to) {
      event.preventDefault();
      event.stopPropagation();
      page.askLink(block, place);
    }
  }

  function key(event, place, element) {
    if (page.menu.key(event) || !place) return;
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      acts.shift([block], event.key === "ArrowUp" ? -1 : 1);
    } else if (isCommand(event)) command(event, place);
    else if (event.key === "Tab") {
      event.preventDefault();
      if (event.shiftKey) acts.outdent(block);
      else acts.indent(block);
    } else if (event.key === "Escape") {
      event.preventDefault();
      page.selectBlocks(block.id, block.id);
    } else if (event.key.startsWith("Arrow")) arrows(event, place, element);
    else if (event.key === "Backspace" && place.to === 0) {
      event.preventDefault();
      acts.mergeBack(block);
    } else if (event.key === "Delete" && place.from === length()) {
      event.preventDefault();
      acts.mergeForward(block);
    }
  }

  function before(event, place) {
    if (!place) return;
    if (event.inputType === "insertParagraph") {
      event.preventDefault();
      acts.split(block, place.from, place.to);
    } else if (event.inputType === "deleteContentBackward" && place.to === 0 && place.from === 0) {
      event.preventDefault();
      acts.mergeBack(block);
    } else if (event.inputType === "insertText" && page.plain?.id === block.id && page.plain.at === place.from && place.to === place.from) {
      // Text after a style that Markdown began is plain.
      event.preventDefault();
      acts.type(block, { ...block.content, text: replaced(block.content.text, place.from, place.to, [{ text: event.data }]) });
      page.focus({ id: block.id, at: place.from + event.data.length });
    }
    page.plain = null;
  }

  /** Signs at the beginning of a line, Markdown before the caret, and the menus of `/` and `@`. */
  function shortcut(spans, place) {
    const words = textOf(spans);
    if (block.kind === "paragraph" && /^(---|```)$/.test(words)) {
      const special = words === "---" ? newBlock("divider") : newBlock("code", { code: "" });
      const rest = words === "---" ? [special, newBlock("paragraph")] : [special];
      acts.type(block, { ...block.content, text: [] });
      acts.insertAfter(block, rest);
      return true;
    }
    const start = place && words[place.from - 1] === " " ? beginning(words.slice(0, place.from)) : null;
    if (start && start.length === place.from && block.kind !== start.kind) {
      const { kind, checked } = start;
      acts.type(block, { ...block.content, text: sliced(spans, start.length) });
      acts.turn(block, kind, kind === "to_do" ? { checked: checked ?? false } : {});
      page.focus({ id: block.id, at: 0 });
      return true;
    }
    return false;
  }

  function change(spans, place) {
    if (shortcut(spans, place)) return;
    const styled = place && place.from === place.to ? fromMarkdown(spans, place.from) : null;
    if (styled) acts.type(block, { ...block.content, text: spans });
    acts.type(block, { ...block.content, text: styled?.spans ?? spans });
    if (styled) {
      page.focus({ id: block.id, at: styled.at });
      page.plain = { id: block.id, at: styled.at };
    }
    page.menu.typed(block, place);
  }

  async function paste(event, { from, to }) {
    const files = [...event.clipboardData.files];
    const blocks = pasted(event.clipboardData);
    if (files.length > 0 && !event.clipboardData.getData("text/html")) return page.upload(files, block);
    const link = /^\s*(https?:\S+)\s*$/.exec(event.clipboardData.getData("text/plain"));
    if (link && from !== to) return acts.type(block, { ...block.content, text: linked(block.content.text, from, to, link[1]) });
    acts.paste(block, from, to, blocks);
    return undefined;
  }

  return { key, before, change, paste };
}

/** The text of a block as an element that is written in. */
export const BlockText = {
  props: ["page", "block"],
  setup(props) {
    const { page } = props;
    return () => {
      const { block } = props;
      const keys = writer(page, block);
      return h(RichText, {
        key: block.id, spans: block.content.text ?? [], label: labelOf(block.kind), isEditable: page.canWrite, "data-text": block.id, expanded: page.menu.state.block === block.id ? page.menu.active : null,
        placeholder: block.kind === "paragraph" ? (page.state.focused === block.id ? "Type / for blocks, @ to mention" : "") : labelOf(block.kind),
        onKey: keys.key, onBefore: keys.before, onChange: keys.change, onPaste: keys.paste,
        onFocus: () => page.focused(block.id), onBlur: () => page.menu.close(),
      });
    };
  },
};

/** Puts a mention or another span in place of what was typed for it. */
export function insertSpan(page, block, from, to, span) {
  page.acts.act("mention", [page.acts.update(block, { content: { ...block.content, text: replaced(block.content.text, from, to, [span, { text: " " }]) } })], { id: block.id, at: from + span.text.length + 1 }, { id: block.id, at: from });
}

export const focusText = (id, at) => {
  const element = document.querySelector(`[data-text="${id}"]`);
  if (!element) return false;
  const end = spansOf(element).reduce((sum, span) => sum + span.text.length, 0);
  const place = at === "same" ? (document.activeElement === element ? null : end) : Math.min(at, end);
  if (place !== null) select(element, place);
  return true;
};
export { isText };
