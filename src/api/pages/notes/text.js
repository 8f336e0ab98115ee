// Formatted text: spans as the API keeps them, the elements that show them, and places in them.

const TAGS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code" };
const MARKS = { STRONG: "bold", B: "bold", EM: "italic", I: "italic", U: "underline", S: "strikethrough", STRIKE: "strikethrough", DEL: "strikethrough", CODE: "code", KBD: "code", TT: "code" };
const ORDER = Object.keys(TAGS);
const [MOST_SPANS, LONGEST_SPAN, LONGEST_LINK] = [500, 10_000, 2_048];

/** An address that a text may link to, else null. */
export function safeLink(text) {
  const address = text.trim();
  if (address.length > LONGEST_LINK || /[\s\\\p{C}]/u.test(address)) return null;
  if (/^mailto:[^@]+@/i.test(address)) return address;
  try {
    const { protocol, hostname } = new URL(address);
    return (protocol === "https:" || protocol === "http:") && hostname ? address : null;
  } catch {
    return null;
  }
}

export const textOf = (spans) => (spans ?? []).map((span) => span.text).join("");

const styleOf = ({ text, ...style }) => JSON.stringify(style);

/** The same text in as few spans as it has styles; those that are too long are cut. */
export function joined(spans) {
  const result = [];
  for (const span of spans) {
    if (!span.text) continue;
    const last = result.at(-1);
    if (last && !span.mention && styleOf(last) === styleOf(span)) last.text += span.text;
    else result.push({ ...span });
  }
  const cut = result.flatMap((span) => (span.text.length <= LONGEST_SPAN ? [span]
    : (span.text.match(/[\s\S]{1,10000}/g) ?? []).map((text) => ({ ...span, text }))));
  if (cut.length <= MOST_SPANS) return cut;
  return [...cut.slice(0, MOST_SPANS - 1), { text: textOf(cut.slice(MOST_SPANS - 1)).slice(0, LONGEST_SPAN) }];
}

/** The text between two places. */
export function sliced(spans, from, to = Infinity) {
  let at = 0;
  const parts = [];
  for (const span of spans ?? []) {
    const [start, end] = [Math.max(from - at, 0), Math.min(to - at, span.text.length)];
    if (start < end) parts.push(span.mention ? span : { ...span, text: span.text.slice(start, end) });
    at += span.text.length;
  }
  return joined(parts);
}

/** A text with the part between two places replaced. */
export const replaced = (spans, from, to, by) => joined([...sliced(spans, 0, from), ...by, ...sliced(spans, to)]);

const withMark = (span, mark, isOn) => {
  const marks = ORDER.filter((one) => (one === mark ? isOn : span.marks?.includes(one)));
  const { marks: _, ...rest } = span;
  return marks.length > 0 ? { ...rest, marks } : rest;
};

/** Sets a mark between two places, or removes it where all of it has the mark. */
export function toggled(spans, from, to, mark) {
  const part = sliced(spans, from, to);
  const isOn = !part.every((span) => span.marks?.includes(mark));
  return replaced(spans, from, to, part.map((span) => withMark(span, mark, isOn)));
}

/** Links a part of a text; null removes links. */
export const linked = (spans, from, to, link) => replaced(spans, from, to, sliced(spans, from, to).map((span) => {
  const { link: _, ...rest } = span;
  return link ? { ...rest, link } : rest;
}));

const INLINE = [
  [/\*\*([^*\n]+)\*\*$/, "bold"], [/(?<![*\w])\*([^*\s][^*\n]*)\*$/, "italic"], [/(?<![_\w])_([^_\s][^_\n]*)_$/, "italic"],
  [/~~([^~\n]+)~~$/, "strikethrough"], [/`([^`\n]+)`$/, "code"],
];

/** A text in which Markdown that ends at a place is a style, with the new place; null without any. */
export function fromMarkdown(spans, at) {
  const before = textOf(spans).slice(0, at);
  const link = /\[([^\]\n]+)\]\(([^()\s]+)\)$/.exec(before);
  const address = link ? safeLink(link[2]) : null;
  if (address) return styled(spans, at, link, (part) => part.map((span) => ({ ...span, link: address })));
  for (const [pattern, mark] of INLINE) {
    const match = pattern.exec(before);
    if (match) return styled(spans, at, match, (part) => part.map((span) => withMark(span, mark, true)));
  }
  return null;
}

function styled(spans, at, match, style) {
  const start = at - match[0].length;
  const inside = start + match[0].indexOf(match[1]);
  const part = style(sliced(spans, inside, inside + match[1].length));
  return { spans: replaced(spans, start, at, part), at: start + match[1].length };
}

function shownSpan(span) {
  if (span.mention) {
    const chip = document.createElement("span");
    chip.className = "mention";
    chip.contentEditable = "false";
    chip.dataset.mention = JSON.stringify(span.mention);
    chip.textContent = span.text;
    return chip;
  }
  const lines = span.text.split("\n").flatMap((line, place) => (place === 0 ? [line] : [document.createElement("br"), line]));
  let node = within(document.createDocumentFragment(), ...lines);
  for (const mark of span.marks ?? []) node = within(document.createElement(TAGS[mark]), node);
  if (span.color) {
    node = within(document.createElement("span"), node);
    node.dataset.color = span.color;
  }
  if (span.link && safeLink(span.link)) {
    node = within(document.createElement("a"), node);
    Object.assign(node, { href: span.link, target: "_blank", rel: "noopener noreferrer nofollow", referrerPolicy: "no-referrer" });
  }
  return node;
}

function within(element, ...nodes) {
  element.append(...nodes);
  return element;
}

/** Shows spans in an element. */
export function show(element, spans) {
  const nodes = (spans ?? []).map(shownSpan);
  // A line break at the end is not seen without another one.
  if (textOf(spans).endsWith("\n")) nodes.push(document.createElement("br"));
  element.replaceChildren(...nodes);
}

function styleHere(element, style) {
  const next = { ...style, marks: new Set(style.marks) };
  const mark = MARKS[element.nodeName];
  if (mark) next.marks.add(mark);
  const css = element.getAttribute?.("data-style")?.toLowerCase() ?? "";
  if (/font-weight\s*:\s*(bold|[6-9]00)/.test(css)) next.marks.add("bold");
  // Google Docs wraps all of its text in a bold element that is not bold.
  if (/font-weight\s*:\s*(normal|400)/.test(css)) next.marks.delete("bold");
  if (/font-style\s*:\s*italic/.test(css)) next.marks.add("italic");
  if (/text-decoration[^;]*underline/.test(css)) next.marks.add("underline");
  if (/text-decoration[^;]*line-through/.test(css)) next.marks.add("strikethrough");
  if (element.nodeName === "A") {
    next.link = safeLink(element.getAttribute("href") ?? "") ?? undefined;
    next.marks.delete("underline");
  }
  if (element.dataset?.color && /^[a-z][a-z_]{0,31}$/.test(element.dataset.color)) next.color = element.dataset.color;
  return next;
}

function mentionOf(element) {
  try {
    return element.dataset?.mention ? JSON.parse(element.dataset.mention) : null;
  } catch {
    return null;
  }
}

function collected(node, style, spans) {
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE || child.nodeName === "BR") {
      const marks = ORDER.filter((mark) => style.marks.has(mark));
      spans.push({
        text: child.nodeName === "BR" ? "\n" : child.data.replaceAll("\u00a0", " ").replaceAll("\u200b", ""),
        ...(marks.length > 0 ? { marks } : {}), ...(style.color ? { color: style.color } : {}), ...(style.link ? { link: style.link } : {}),
      });
    } else if (child.nodeType === Node.ELEMENT_NODE && !["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT"].includes(child.nodeName)) {
      const mention = mentionOf(child);
      if (mention) spans.push({ text: child.textContent, mention });
      else collected(child, styleHere(child, style), spans);
    }
  }
  return spans;
}

/** The spans of the nodes in an element, whatever they are. */
export const read = (element) => joined(collected(element, { marks: new Set() }, []));

/** The text of an element that is edited; the browser ends its last line with a break of its own. */
export function spansOf(element) {
  const spans = read(element);
  const last = spans.at(-1);
  if (element.lastChild?.nodeName === "BR" && last?.text.endsWith("\n")) return joined([...spans.slice(0, -1), { ...last, text: last.text.slice(0, -1) }]);
  return spans;
}

const isLeaf = (node) => node.nodeType === Node.TEXT_NODE || node.nodeName === "BR" || Boolean(node.dataset?.mention);
const lengthOf = (node) => (node.nodeName === "BR" ? 1 : node.textContent.length);

function* leaves(node) {
  for (const child of node.childNodes) {
    if (isLeaf(child)) yield child;
    else yield* leaves(child);
  }
}

function placeOf(root, node, offset) {
  const range = document.createRange();
  range.setStart(root, 0);
  range.setEnd(node, offset);
  let length = 0;
  for (const leaf of leaves(root)) {
    if (leaf === node) return length + offset;
    if (range.comparePoint(leaf.parentNode, [...leaf.parentNode.childNodes].indexOf(leaf) + 1) > 0) return length;
    length += lengthOf(leaf);
  }
  return length;
}

/** The places of the selection in an element, as numbers of signs; null for none. */
export function selected(element) {
  const selection = getSelection();
  if (selection.rangeCount === 0 || !element.contains(selection.anchorNode) || !element.contains(selection.focusNode)) return null;
  const range = selection.getRangeAt(0);
  const from = placeOf(element, range.startContainer, range.startOffset);
  return { from, to: range.collapsed ? from : placeOf(element, range.endContainer, range.endOffset) };
}

function pointAt(root, at) {
  let left = at;
  for (const leaf of leaves(root)) {
    const length = lengthOf(leaf);
    if (leaf.nodeType === Node.TEXT_NODE && left <= length) return [leaf, left];
    if (left < length) return [leaf.parentNode, [...leaf.parentNode.childNodes].indexOf(leaf)];
    left -= length;
  }
  return [root, root.childNodes.length];
}

/** Puts the caret into an element, or selects a part of it. */
export function select(element, from, to = from) {
  element.focus({ preventScroll: true });
  getSelection().setBaseAndExtent(...pointAt(element, from), ...pointAt(element, to));
  element.scrollIntoView({ block: "nearest" });
}
