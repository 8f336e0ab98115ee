// The blocks of a page: each with its handle, its content by kind, and those in it.

import { button } from "/pages/views/controls.js";
import { followPointer } from "/pages/views/drag.js";
import { PARTS } from "./parts.js";
import { BlockText } from "./writing.js";
import { isList, isText, labelOf, TEXT_KINDS, walk } from "./tree.js";

const { computed, h, nextTick, ref } = globalThis.Vue;
const LEVELS = { heading_1: 2, heading_2: 3, heading_3: 4 };

/** The blocks of one level, from top to bottom. */
export const BlockList = {
  name: "BlockList",
  props: ["page", "blocks"],
  setup(props) {
    const numbers = computed(() => {
      let number = 0;
      return props.blocks.map((block) => { number = block.kind === "numbered_list_item" ? number + 1 : 0; return number; });
    });
    return () => h("div", { class: "note-list" }, props.blocks.map((block, at) => h(BlockView, { key: block.id, page: props.page, block, number: numbers.value[at] })));
  },
};

const MENU = [
  ["Move up", (acts, blocks) => acts.shift(blocks, -1)], ["Move down", (acts, blocks) => acts.shift(blocks, 1)],
  ["Duplicate", (acts, blocks) => acts.duplicate(blocks)], ["Delete", (acts, blocks) => acts.remove(blocks)],
];

/** The button beside a block: it opens the menu, drags the block, and selects it. */
const Handle = {
  props: ["page", "block"],
  setup(props) {
    const isOpen = ref(false);
    const root = ref(null);
    const close = (toButton) => {
      isOpen.value = false;
      if (toButton) root.value?.querySelector("button")?.focus();
    };
    const open = async () => {
      isOpen.value = !isOpen.value;
      await nextTick();
      root.value?.querySelector(".note-menu button")?.focus();
    };
    const turns = () => (isText(props.block) ? Object.keys(TEXT_KINDS).filter((kind) => kind !== props.block.kind) : []);
    const pick = (does) => () => {
      close();
      does(props.page.acts, props.page.chosen(props.block));
    };
    const keys = (event) => {
      if (event.key === "Escape") { event.stopPropagation(); close(true); }
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      const all = [...root.value.querySelectorAll(".note-menu button")];
      const at = all.indexOf(document.activeElement);
      all[(at + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length]?.focus();
    };
    const item = (label, does) => h("button", { type: "button", class: "menu-item", role: "menuitem", key: label, onClick: pick(does) }, label);
    return () => h("div", {
      class: "note-handle", ref: root, contenteditable: "false",
      onFocusout: (event) => { if (isOpen.value && !root.value.contains(event.relatedTarget)) close(); },
    }, [
      h("button", {
        type: "button", class: "grip", "aria-label": `${labelOf(props.block.kind)} block`, "aria-haspopup": "menu", "aria-expanded": isOpen.value, tabindex: -1, title: "Drag to move, click for the menu",
        onClick: open, onPointerdown: (event) => drag(event, props.page, props.block),
      }, "⠿"),
      isOpen.value ? h("div", { class: "note-menu", role: "menu", "aria-label": "Block", onKeydown: keys }, [
        ...MENU.map(([label, does]) => item(label, does)),
        ...(turns().length > 0 ? [h("p", { class: "quiet", key: "turn", role: "presentation" }, "Turn into")] : []),
        ...turns().map((kind) => item(labelOf(kind), (acts) => acts.turn(props.block, kind))),
      ]) : null,
    ]);
  },
};

/** Moves a block with the pointer, or all selected ones, to between others. */
function drag(event, page, block) {
  const element = event.target.closest(".note-block");
  const blocks = page.chosen(block);
  const body = document.getElementById("note-body");
  let aim = null;
  const inside = new Set([...walk(blocks)].map((one) => one.id));
  const clear = () => body.querySelectorAll(".aim-above, .aim-below").forEach((one) => one.classList.remove("aim-above", "aim-below"));
  followPointer(event, {
    element, scroller: body,
    over(x, y) {
      clear();
      aim = null;
      const rows = [...body.querySelectorAll(".note-block")].filter((one) => !inside.has(one.dataset.block));
      const over = rows.findLast((one) => one.getBoundingClientRect().top <= y) ?? rows[0];
      if (!over) return;
      const line = over.querySelector(":scope > .note-row").getBoundingClientRect();
      const isAbove = y < line.top + line.height / 2;
      over.classList.add(isAbove ? "aim-above" : "aim-below");
      aim = { id: over.dataset.block, isAbove };
    },
    drop() {
      clear();
      const target = aim && page.tree.find(aim.id);
      if (!target) return;
      page.acts.moveTo(blocks, aim.isAbove ? page.tree.place(target) : page.acts.after(target));
    },
    cancel: clear,
  });
}

function marker(page, block, number) {
  switch (block.kind) {
    case "bulleted_list_item": return h("span", { class: "note-marker", "aria-hidden": "true" }, "•");
    case "numbered_list_item": return h("span", { class: "note-marker" }, `${number}.`);
    case "to_do": return h("input", {
      type: "checkbox", class: "note-marker", checked: Boolean(block.content.checked), disabled: !page.canWrite, "aria-label": "Done",
      onChange: (event) => page.acts.change(block, { ...block.content, checked: event.target.checked }),
    });
    case "toggle": {
      const isOpen = !page.closed.has(block.id);
      return h("button", { type: "button", class: "note-marker turn", "aria-expanded": isOpen, "aria-label": "Toggle", onClick: () => (isOpen ? page.closed.add(block.id) : page.closed.delete(block.id)) }, isOpen ? "▾" : "▸");
    }
    case "callout": return h("span", { class: "note-marker", "aria-hidden": "true" }, block.content.icon ?? "💡");
    default: return null;
  }
}

/** Two versions of a block, of which one or both are kept; and the reason of a refusal. */
function notices(page, block) {
  return [
    block.conflict ? h("div", { class: "note-conflict", role: "alert" }, [
      h("p", null, block.conflict.text),
      page.tree.find(block.conflict.id) ? h("div", { class: "buttons" }, [
        button("Keep both", () => { block.conflict = undefined; }, { class: "small" }),
        button("Keep mine", () => page.acts.settle(block, "mine"), { class: "small" }),
        button("Keep theirs", () => page.acts.settle(block, "theirs"), { class: "small" }),
      ]) : null,
    ]) : null,
    block.problem ? h("p", { class: "fault", role: "alert" }, block.problem) : null,
  ];
}

const BlockView = {
  name: "BlockView",
  props: ["page", "block", "number"],
  setup(props) {
    return () => {
      const { page, block, number } = props;
      const level = LEVELS[block.kind];
      const content = isText(block) ? h(BlockText, { page, block }) : h(PARTS[block.kind] ?? PARTS.unknown, { page, block });
      const isShut = block.kind === "toggle" && page.closed.has(block.id);
      return h("div", {
        class: ["note-block", { selected: page.selection.has(block.id), "in-list": isList(block) }], "data-kind": block.kind, "data-block": block.id,
        "data-checked": block.kind === "to_do" && block.content.checked ? "true" : undefined,
      }, [
        h("div", { class: "note-row" }, [
          page.canWrite ? h(Handle, { page, block }) : null,
          marker(page, block, number),
          h("div", { class: "note-content", ...(level ? { role: "heading", "aria-level": level } : {}) }, [content]),
        ]),
        ...notices(page, block),
        block.children.length > 0 && !isShut ? h("div", { class: ["note-children", { "side-by-side": block.kind === "column_list" }] }, h(BlockList, { page, blocks: block.children })) : null,
      ]);
    };
  },
};
