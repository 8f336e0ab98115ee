// Tables of the clipboard: what spreadsheets copy is read, and what they read is written.

/** The delimiter of a text without tabs that is CSV all the same; null for a plain text. */
function delimiterOf(text) {
  for (const delimiter of [";", ","]) {
    const rows = split(text, delimiter);
    const isRegular = rows.length > 1 || /^"(?:[^"]|"")*"[;,]/.test(text);
    if (isRegular && rows[0].length > 1 && rows.every((row) => row.length === rows[0].length)) return delimiter;
  }
  return null;
}

/** Rows of a delimited text: RFC 4180, with quotes only at the beginning of a cell. */
function split(text, delimiter) {
  const rows = [];
  let row = [];
  let at = 0;
  while (at <= text.length) {
    let cell = "";
    if (text[at] === '"') {
      const match = /^"((?:[^"]|"")*)"(?=$|\r|\n|\t|;|,)/.exec(text.slice(at));
      if (match && [undefined, "\r", "\n", delimiter].includes(text[at + match[0].length])) {
        cell = match[1].replaceAll('""', '"').replace(/\r\n?/g, "\n");
        at += match[0].length;
      } else {
        const end = endOf(text, at, delimiter);
        cell = text.slice(at, end);
        at = end;
      }
    } else {
      const end = endOf(text, at, delimiter);
      cell = text.slice(at, end);
      at = end;
    }
    row.push(cell);
    if (text[at] === delimiter) {
      at += 1;
      continue;
    }
    rows.push(row);
    row = [];
    if (at >= text.length) break;
    at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
  }
  // The end of the last line begins no further one.
  if (rows.length > 1 && rows.at(-1).length === 1 && rows.at(-1)[0] === "") rows.pop();
  return rows;
}

function endOf(text, from, delimiter) {
  for (let at = from; at < text.length; at += 1) if (text[at] === delimiter || text[at] === "\n" || text[at] === "\r") return at;
  return text.length;
}

const GUARDED = /^'(?=[=+\-@\t])/;

/** Rows of `{text}` of a plain text: tabs part cells, else what CSV parts them by. */
export function parseText(text) {
  const clean = text.replace(/^\ufeff/, "").replace(/\0/g, "");
  if (clean === "") return [];
  const delimiter = clean.includes("\t") ? "\t" : delimiterOf(clean) ?? "\t";
  return split(clean, delimiter).map((row) => row.map((cell) => ({ text: cell.replace(GUARDED, "") })));
}

function attributeNumber(text) {
  const value = text === null || text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** The value of a cell that a spreadsheet puts beside its text: an exact number, or true and false. */
function exactOf(cell) {
  const sheets = cell.getAttribute("data-sheets-value");
  if (sheets) {
    try {
      const value = JSON.parse(sheets);
      if (value["1"] === 3 && typeof value["3"] === "number") return value["3"];
      if (value["1"] === 4) return value["4"] === 1;
    } catch { /* another form */ }
  }
  return attributeNumber(cell.getAttribute("x:num") || cell.getAttribute("sdval"));
}

function ownOf(cell) {
  try {
    const own = JSON.parse(cell.getAttribute("data-cell") ?? "null");
    return own && typeof own.kind === "string" && "value" in own ? { kind: own.kind, value: own.value } : undefined;
  } catch {
    return undefined;
  }
}

const BLOCKS = new Set(["P", "DIV", "LI", "H1", "H2", "H3", "H4", "TR", "PRE"]);

/** The text of a cell as it reads: lines break where elements say so, other white space is one space. */
function textIn(node) {
  let text = "";
  const walk = (one) => {
    if (one.nodeType === 3) {
      const piece = one.data.replace(/[ \t\r\n\f]+/g, " ");
      text += /(^|[\n ])$/.test(text) ? piece.replace(/^ /, "") : piece;
    } else if (one.nodeType === 1) {
      if (["SCRIPT", "STYLE", "TEMPLATE", "TITLE"].includes(one.tagName)) return;
      if (one.tagName === "BR") { text = `${text.replace(/ $/, "")}\n`; return; }
      const isBlock = BLOCKS.has(one.tagName);
      if (isBlock && text && !text.endsWith("\n")) text += "\n";
      one.childNodes.forEach(walk);
      if (isBlock && one.nextSibling && !text.endsWith("\n")) text += "\n";
    }
  };
  node.childNodes.forEach(walk);
  return text.replace(/\u00a0/g, " ").replace(/^[ ]+|[ \n]+$/g, "");
}

// The policy of the page has no inline styles and handlers, in parsed documents neither.
export const withoutCode = (html) => html.replace(/<(style|script)\b[^]*?<\/\1\s*>/gi, "").replace(/<[a-z][^>]*>/gi, (tag) => tag.replace(/([\s/"'])(style|on\w+)(?=\s*=)/gi, "$1data-$2"));

const isHidden = (element) => /display\s*:\s*none/i.test(element.getAttribute("data-style") ?? "");
const spanOf = (cell, name) => Math.min(Math.max(Number.parseInt(cell.getAttribute(name) ?? "1", 10) || 1, 1), 1000);

/** Rows of `{text, exact, own}` of the first table in HTML; null without one. A span leaves empty cells. */
export function parseHtml(html) {
  const table = new DOMParser().parseFromString(withoutCode(html), "text/html").querySelector("table");
  if (!table) return null;
  const rows = [];
  let spans = [];
  for (const line of table.rows) {
    if (isHidden(line)) continue;
    const row = [];
    const next = [];
    const skip = () => { while (spans[row.length] > 0) { next[row.length] = spans[row.length] - 1; row.push({ text: "" }); } };
    for (const cell of line.cells) {
      skip();
      if (isHidden(cell)) continue;
      const [width, height] = [spanOf(cell, "colspan"), spanOf(cell, "rowspan")];
      for (let at = 0; at < width; at += 1) {
        next[row.length] = height - 1;
        row.push(at === 0 ? { text: textIn(cell).replace(GUARDED, ""), exact: exactOf(cell), own: ownOf(cell) } : { text: "" });
      }
    }
    skip();
    spans = next;
    rows.push(row);
  }
  const width = Math.max(0, ...rows.map((row) => row.length));
  if (width === 0) return null;
  return rows.map((row) => [...row, ...Array.from({ length: width - row.length }, () => ({ text: "" }))]);
}

/** The table in a clipboard, by its HTML, else by its text. */
export function parse({ html, text }) {
  return (html && parseHtml(html)) || parseText(text ?? "");
}

const quoted = (text) => (/[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
/** A text that a spreadsheet would read as a formula is marked as a text. */
const guarded = ({ text, isText }) => (isText && /^[=+\-@\t]/.test(text) ? `'${text}` : text);
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ENTITIES[sign]);

/** Rows of `{text, isText, own}` as tab-separated text and as HTML. */
export function written(rows) {
  const text = rows.map((row) => row.map((cell) => quoted(guarded(cell))).join("\t")).join("\n");
  const cells = (row) => row.map((cell) => {
    const own = cell.own ? ` data-cell="${escaped(JSON.stringify(cell.own))}"` : "";
    return `<td${own}>${escaped(guarded(cell)).replaceAll("\n", "<br>")}</td>`;
  }).join("");
  const html = `<meta charset="utf-8"><table>${rows.map((row) => `<tr>${cells(row)}</tr>`).join("")}</table>`;
  return { text, html };
}
