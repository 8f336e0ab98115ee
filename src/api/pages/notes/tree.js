// The blocks of a page as a tree, the kinds there are, and edits that can be taken back.

const { markRaw } = globalThis.Vue;

/** Kinds with formatted text; the sign that begins a line and makes one, and how menus name them. */
export const TEXT_KINDS = {
  paragraph: { label: "Text", hint: "Plain paragraph" },
  heading_1: { label: "Heading 1", hint: "#", sign: "#" },
  heading_2: { label: "Heading 2", hint: "##", sign: "##" },
  heading_3: { label: "Heading 3", hint: "###", sign: "###" },
  bulleted_list_item: { label: "Bulleted list", hint: "-", sign: "-" },
  numbered_list_item: { label: "Numbered list", hint: "1.", sign: "1." },
  to_do: { label: "To-do", hint: "[]", sign: "[]" },
  toggle: { label: "Toggle", hint: "Collapsible text" },
  quote: { label: "Quote", hint: ">", sign: ">" },
  callout: { label: "Callout", hint: "Highlighted text" },
};
export const OTHER_KINDS = {
  code: { label: "Code", hint: "```" },
  divider: { label: "Divider", hint: "---" },
  table: { label: "Table", hint: "Rows and columns" },
  image: { label: "Image", hint: "Upload or URL" },
  file: { label: "File", hint: "Upload" },
  bookmark: { label: "Link to a web page", hint: "URL" },
  database_view: { label: "Database view", hint: "Records of a database" },
  item_link: { label: "Link to an item", hint: "Page, database, form" },
  equation: { label: "Equation", hint: "LaTeX" },
  table_of_contents: { label: "Table of contents", hint: "From the headings" },
};
const LISTS = new Set(["bulleted_list_item", "numbered_list_item", "to_do"]);
const SIGNS = new Map([
  ...Object.entries(TEXT_KINDS).flatMap(([kind, { sign }]) => (sign ? [[sign, { kind }]] : [])),
  ["*", { kind: "bulleted_list_item" }], ["+", { kind: "bulleted_list_item" }], ["1)", { kind: "numbered_list_item" }],
  ["[ ]", { kind: "to_do" }], ["[x]", { kind: "to_do", checked: true }], ["[X]", { kind: "to_do", checked: true }],
]);

export const isText = (block) => block.kind in TEXT_KINDS;
export const isList = (block) => LISTS.has(block.kind);
export const labelOf = (kind) => (TEXT_KINDS[kind] ?? OTHER_KINDS[kind])?.label ?? kind.replaceAll("_", " ");

/** The kind that the signs at the beginning of a line give it, with their length; null for none. */
export function beginning(text) {
  const space = text.indexOf(" ") === 1 && text[0] === "[" ? text.indexOf(" ", 2) : text.indexOf(" ");
  const sign = space < 0 ? null : SIGNS.get(text.slice(0, space));
  return sign ? { ...sign, length: space + 1 } : null;
}

/** A new block; its content is replaced as a whole, and never changed. */
export const newBlock = (kind, content = isText({ kind }) ? { text: [] } : {}, children = []) =>
  ({ id: crypto.randomUUID(), parentBlockId: null, kind, content: markRaw(content), children, updatedAt: null, saved: null });

const bodyOf = ({ kind, content }) => JSON.stringify([kind, content]);

/** Blocks as the API answers them. */
export const received = (blocks) => blocks.map(({ id, parentBlockId, kind, content, updatedAt, children = [] }) => ({
  id, parentBlockId, kind, content: markRaw(content), updatedAt, saved: bodyOf({ kind, content }), children: received(children),
}));

/** Blocks as the API takes them. */
export const sent = (block) => ({ id: block.id, kind: block.kind, content: block.content, children: block.children.map(sent) });

export const isSaved = (block) => block.saved === bodyOf(block);
export const bodyText = bodyOf;

/** All blocks from top to bottom, each with those in it after it. */
export function* walk(blocks) {
  for (const block of blocks) {
    yield block;
    yield* walk(block.children);
  }
}

/** The tree of a page; every edit gives the one that takes it back. */
export class Tree {
  constructor(root) {
    this.root = root;
  }

  get blocks() { return this.root.blocks; }

  find(id) {
    for (const block of walk(this.blocks)) if (block.id === id) return block;
    return null;
  }

  parent(block) { return block.parentBlockId ? this.find(block.parentBlockId) : null; }

  siblings(block) { return this.parent(block)?.children ?? this.blocks; }

  /** The parent and the sibling before, which say where a block is. */
  place(block) {
    const siblings = this.siblings(block);
    const at = siblings.findIndex((one) => one.id === block.id);
    return { parentId: block.parentBlockId ?? null, afterId: siblings[at - 1]?.id ?? null };
  }

  put(block, { parentId, afterId }) {
    const parent = parentId ? this.find(parentId) : null;
    const siblings = parent?.children ?? this.blocks;
    block.parentBlockId = parent?.id ?? null;
    const at = afterId ? siblings.findIndex((one) => one.id === afterId) : -1;
    siblings.splice(afterId && at < 0 ? siblings.length : at + 1, 0, block);
    for (const one of walk([block])) one.children.forEach((child) => { child.parentBlockId = one.id; });
  }

  take(block) {
    const siblings = this.siblings(block);
    siblings.splice(siblings.findIndex((one) => one.id === block.id), 1);
  }

  /** Does an edit; null when what it is about is not there any more, or not as it expects. */
  apply(edit) {
    const block = edit.op === "insert" ? null : this.find(edit.id);
    if (edit.op !== "insert" && !block) return null;
    switch (edit.op) {
      case "insert":
        if (this.find(edit.block.id)) return null;
        this.put(copyOf(edit.block), edit.place);
        return { op: "remove", id: edit.block.id };
      case "remove": {
        const place = this.place(block);
        this.take(block);
        return { op: "insert", block: copyOf(block), place };
      }
      case "move": {
        const place = this.place(block);
        if ([...walk([block])].some((one) => one.id === edit.place.parentId || one.id === edit.place.afterId)) return null;
        this.take(block);
        this.put(block, edit.place);
        return { op: "move", id: block.id, place };
      }
      default: {
        if (edit.expected && edit.expected !== bodyOf(block)) return null;
        const before = { op: "update", id: block.id, kind: block.kind, content: block.content };
        Object.assign(block, { kind: edit.kind ?? block.kind, content: markRaw(edit.content ?? block.content) });
        return { ...before, expected: bodyOf(block) };
      }
    }
  }
}

/** A block that shares nothing with the one on the page; it is not saved yet. */
const copyOf = (block) => ({ ...block, updatedAt: null, saved: null, children: block.children.map(copyOf) });

/** The same with new ids. */
export const duplicated = (block) => ({ ...newBlock(block.kind, block.content, block.children.map(duplicated)) });
