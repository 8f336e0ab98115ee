// The contents of the clipboard as blocks: HTML of other programs, Markdown, and blocks of our own pages.

import { withoutCode } from "/pages/grid/clipboard.js";
import { fromMarkdown, joined, read, safeLink, textOf } from "./text.js";
import { beginning, isText, newBlock, walk } from "./tree.js";

const [MOST_BLOCKS, MOST_CELLS, MOST_ROWS, LONGEST_CODE, DEEPEST] = [500, 50, 500, 60_000, 8];
const HEADINGS = { H1: "heading_1", H2: "heading_2", H3: "heading_3", H4: "heading_3", H5: "heading_3", H6: "heading_3" };
const IGNORED = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "META", "LINK", "TITLE", "IFRAME", "OBJECT", "EMBED", "SVG", "MATH", "FORM", "INPUT", "BUTTON", "SELECT", "TEXTAREA", "VIDEO", "AUDIO", "CANVAS"]);
const INLINE = new Set(["A", "ABBR", "B", "BDI", "BDO", "BR", "CITE", "CODE", "DEL", "DFN", "EM", "FONT", "I", "INS", "KBD", "MARK", "Q", "S", "SAMP", "SMALL", "SPAN", "STRIKE", "STRONG", "SUB", "SUP", "TIME", "TT", "U", "VAR"]);

/** Spaces and line breaks of a source are one space, as a browser shows them. */
function collapsed(spans) {
  let isOpen = false;
  const one = joined(spans.map((span) => {
    if (span.mention || span.text === "\n") { isOpen = false; return span; }
    let text = span.text.replace(/[ \t\r\n]+/g, " ");
    if (isOpen) text = text.replace(/^ /, "");
    isOpen = text === "" ? isOpen : text.endsWith(" ");
    return { ...span, text };
  }));
  if (one.length > 0) {
    one[0] = { ...one[0], text: one[0].text.replace(/^\s+/, "") };
    one[one.length - 1] = { ...one.at(-1), text: one.at(-1).text.replace(/\s+$/, "") };
  }
  return joined(one);
}

const isInline = (node) => node.nodeType === Node.TEXT_NODE
  || (INLINE.has(node.nodeName) && ![...node.querySelectorAll("*")].some((one) => !INLINE.has(one.nodeName) && !IGNORED.has(one.nodeName.toUpperCase())));

/** The spans of some nodes next to each other. */
function spansIn(nodes) {
  const holder = document.implementation.createHTMLDocument("").createElement("div");
  holder.append(...nodes.map((node) => node.cloneNode(true)));
  return collapsed(read(holder));
}

function paragraph(nodes) {
  const text = spansIn(nodes);
  return text.length > 0 ? [newBlock("paragraph", { text })] : [];
}

function table(element) {
  const rows = [...element.rows].slice(0, MOST_ROWS).map((row) => [...row.cells].slice(0, MOST_CELLS).map((cell) => spansIn([...cell.childNodes])));
  const width = Math.max(0, ...rows.map((row) => row.length));
  if (width === 0) return [];
  const isHead = Boolean(element.tHead) || [...element.rows[0].cells].every((cell) => cell.nodeName === "TH");
  return [newBlock("table", { rows: rows.map((row) => Array.from({ length: width }, (_, at) => row[at] ?? [])), headerRow: isHead })];
}

function listItem(item, kind, depth) {
  const nested = [...item.children].filter((one) => one.nodeName === "UL" || one.nodeName === "OL");
  const box = item.querySelector(":scope > input[type=checkbox], :scope > label > input[type=checkbox], :scope > p > input[type=checkbox]");
  const rest = [...item.childNodes].filter((one) => !nested.includes(one));
  const blocks = blocksIn(rest, depth + 1);
  const first = blocks[0]?.kind === "paragraph" ? blocks.shift() : newBlock("paragraph");
  const children = [...blocks, ...nested.flatMap((one) => list(one, depth + 1))];
  let { text } = first.content;
  const typed = /^\[([ xX])\]\s+/.exec(textOf(text));
  const isToDo = Boolean(box ?? typed);
  if (!box && typed) text = joined([{ ...text[0], text: text[0].text.slice(typed[0].length) }, ...text.slice(1)]);
  const content = isToDo ? { text, checked: box ? box.hasAttribute("checked") : typed[1] !== " " } : { text };
  return newBlock(isToDo ? "to_do" : kind, content, depth < DEEPEST ? children : []);
}

function list(element, depth) {
  const kind = element.nodeName === "OL" ? "numbered_list_item" : "bulleted_list_item";
  const blocks = [];
  for (const one of element.children) {
    if (one.nodeName === "LI") blocks.push(listItem(one, kind, depth));
    // Word and Google Docs put an inner list beside its item.
    else if (one.nodeName === "UL" || one.nodeName === "OL") (blocks.at(-1)?.children ?? blocks).push(...list(one, depth + 1));
  }
  return blocks;
}

function image(element) {
  const url = safeLink(element.getAttribute("src") ?? "");
  const alt = (element.getAttribute("alt") ?? "").slice(0, 2000);
  return url && /^https?:/i.test(url) ? [newBlock("image", { url, ...(alt ? { alt } : {}) })] : [];
}

function blockOf(element, depth) {
  const name = element.nodeName.toUpperCase();
  if (IGNORED.has(name) || depth > 40) return [];
  if (HEADINGS[name]) return [newBlock(HEADINGS[name], { text: spansIn([...element.childNodes]) })];
  if (name === "UL" || name === "OL") return list(element, 0);
  if (name === "TABLE") return table(element);
  if (name === "HR") return [newBlock("divider")];
  if (name === "IMG") return image(element);
  if (name === "PRE") return [newBlock("code", { code: element.textContent.replace(/\n$/, "").slice(0, LONGEST_CODE) })];
  if (name === "BLOCKQUOTE") {
    const [first, ...rest] = blocksIn([...element.childNodes], depth + 1);
    if (!first) return [];
    return first.kind === "paragraph" ? [newBlock("quote", first.content, rest)] : [newBlock("quote", { text: [] }, [first, ...rest])];
  }
  if (name === "SUMMARY" || name === "P") return pictured(element, depth);
  return blocksIn([...element.childNodes], depth + 1);
}

/** A paragraph with the pictures in it after it. */
function pictured(element, depth) {
  if (![...element.children].every((one) => isInline(one) || one.nodeName === "IMG")) return blocksIn([...element.childNodes], depth + 1);
  return [...paragraph([...element.childNodes].filter((one) => one.nodeName !== "IMG")), ...[...element.querySelectorAll("img")].flatMap(image)];
}

function blocksIn(nodes, depth) {
  const blocks = [];
  let line = [];
  const close = () => {
    blocks.push(...paragraph(line));
    line = [];
  };
  for (const node of nodes) {
    if (node.nodeType !== Node.TEXT_NODE && node.nodeType !== Node.ELEMENT_NODE) continue;
    if (isInline(node)) {
      line.push(node);
      continue;
    }
    close();
    blocks.push(...blockOf(node, depth));
  }
  close();
  return blocks;
}

/** Blocks of HTML of any origin: nothing of it runs, is loaded, or comes in but text and structure. */
export function fromHtml(html) {
  const parsed = new DOMParser().parseFromString(withoutCode(html), "text/html");
  return limited(blocksIn([...parsed.body.childNodes], 0));
}

function limited(blocks) {
  let left = MOST_BLOCKS;
  const cut = (list) => list.filter(() => { left -= 1; return left >= 0; }).map((block) => ({ ...block, children: cut(block.children) }));
  return cut(blocks);
}

/** The spans of a line of Markdown. */
export function inline(text) {
  let spans = [];
  for (const sign of text) {
    spans = joined([...spans, { text: sign }]);
    if ("*_~`)".includes(sign)) spans = fromMarkdown(spans, textOf(spans).length)?.spans ?? spans;
  }
  return spans;
}

/** Blocks of plain text, one a line, with the signs of Markdown; a fence is code. */
export function fromText(text) {
  const blocks = [];
  const lines = text.replaceAll("\r\n", "\n").replaceAll("\r", "\n").split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    const fence = /^```\s*([\w+#.-]*)\s*$/.exec(line);
    const end = fence ? lines.findIndex((one, place) => place > at && /^```\s*$/.test(one)) : -1;
    if (end > at) {
      blocks.push(newBlock("code", { code: lines.slice(at + 1, end).join("\n").slice(0, LONGEST_CODE), ...(fence[1] ? { language: fence[1] } : {}) }));
      at = end;
    } else if (/^\s*(---+|\*\*\*+)\s*$/.test(line)) blocks.push(newBlock("divider"));
    else if (line.trim() !== "") blocks.push(...ofLine(line, blocks));
  }
  return limited(blocks);
}

function ofLine(line, blocks) {
  const indent = /^[ \t]*/.exec(line)[0].replaceAll("\t", "    ").length;
  const words = line.trim().replace(/^[-*+] (\[[ xX]\] )/, "$1");
  const start = beginning(words) ?? (/^\d{1,9}[.)] /.test(words) ? { kind: "numbered_list_item", length: words.indexOf(" ") + 1 } : null);
  const text = inline(start ? words.slice(start.length) : words);
  const { kind = "paragraph", checked } = start ?? {};
  const block = newBlock(kind, kind === "to_do" ? { text, checked: checked ?? false } : { text });
  if (indent < 2 || !blocks.at(-1) || !isText(blocks.at(-1))) return [block];
  let parent = blocks.at(-1);
  for (let depth = 2; depth + 2 <= indent && depth < 2 * DEEPEST && parent.children.length > 0; depth += 2) parent = parent.children.at(-1);
  parent.children.push(block);
  return [];
}

const OWN = "application/x-workspace-blocks";

/** Puts blocks on the clipboard: as themselves, and as text for other programs. */
export function copyBlocks(event, blocks) {
  const plain = [...walk(blocks)].map((block) => textOf(block.content.text) || block.content.code || block.content.url || "").join("\n");
  event.clipboardData.setData("text/plain", plain);
  event.clipboardData.setData(OWN, JSON.stringify(blocks.map(bare)));
  event.preventDefault();
}

const bare = ({ kind, content, children }) => ({ kind, content, children: children.map(bare) });
const fresh = ({ kind, content, children }) => newBlock(String(kind), content ?? {}, (children ?? []).map(fresh));

/** The blocks of a clipboard; none for what has no text. */
export function pasted(data) {
  const own = data.getData(OWN);
  if (own) {
    try {
      return limited(JSON.parse(own).map(fresh));
    } catch {
      // Another page can put anything there under our name: it is read as text.
    }
  }
  const html = data.getData("text/html");
  const blocks = html ? fromHtml(html) : [];
  return blocks.length > 0 ? blocks : fromText(data.getData("text/plain"));
}
