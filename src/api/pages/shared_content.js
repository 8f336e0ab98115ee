// What each kind of shared item looks like.

import { element, moment, plain } from "/pages/words.js";

const SAFE = /^(https?|mailto):/;
const TAGS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code" };

const link = (href, ...children) =>
  element("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);

const text = (spans = []) => spans.map((span) => {
  let shown = document.createTextNode(span.text);
  for (const mark of span.marks ?? []) shown = element(TAGS[mark], {}, shown);
  return SAFE.test(span.link ?? "") ? link(span.link, shown) : shown;
});

const nested = (block) => block.children.length ? blocks(block.children) : null;
const titled = (tag) => (block) => element("div", {}, element(tag, {}, ...text(block.content.text)), nested(block));
const entry = (block) => element("li", {}, ...text(block.content.text), nested(block));
const caption = ({ content }) => content.caption && element("p", { class: "quiet" }, content.caption);

/** A file we keep is shown or offered; one of the web is a link, for pages load nothing from there. */
function media(block) {
  const { content, kind } = block;
  const name = content.name ?? content.alt ?? content.title ?? plain(kind);
  const url = content.downloadUrl;
  if (url && kind === "image") {
    const picture = element("img", { src: url, alt: content.alt ?? "", loading: "lazy" });
    return element("figure", {}, picture, caption(block));
  }
  const shown = url ? element("a", { href: url }, `↓ ${name}`)
    : SAFE.test(content.url ?? "") ? link(content.url, content.title ?? content.url)
    : element("span", { class: "quiet" }, `${name} (not part of this link)`);
  return element("p", {}, shown, caption(block));
}

function grid({ content }) {
  const cell = (spans, heading) => element(heading ? "th" : "td", {}, ...text(spans));
  return element("div", { class: "wide" }, element("table", {}, ...content.rows.map((row, number) =>
    element("tr", {}, ...row.map((spans, column) =>
      cell(spans, (content.headerRow && number === 0) || (content.headerColumn && column === 0)))))));
}

const DRAWN = {
  heading_1: titled("h2"), heading_2: titled("h3"), heading_3: titled("h4"),
  quote: titled("blockquote"),
  callout: (block) => element("aside", {}, block.content.icon && `${block.content.icon} `,
    ...text(block.content.text), nested(block)),
  toggle: (block) => element("details", { open: true },
    element("summary", {}, ...text(block.content.text)), nested(block)),
  to_do: (block) => element("p", {}, block.content.checked ? "☑ " : "☐ ",
    ...text(block.content.text), nested(block)),
  code: (block) => element("div", {}, element("pre", {}, element("code", {}, block.content.code)), caption(block)),
  equation: (block) => element("pre", {}, block.content.expression),
  divider: () => element("hr"),
  table_of_contents: () => null,
  image: media, video: media, audio: media, file: media, embed: media, bookmark: media, shortcut: media,
  table: grid,
  column_list: (block) => element("div", { class: "columns" }, ...block.children.map((one) => blocks(one.children))),
  drawing: () => null,
};

/** Words where there are any; of what shows other things of the workspace, its title. */
function other(block) {
  if (block.content.text) {
    return element("div", {}, element("p", {}, ...text(block.content.text)), nested(block));
  }
  const title = block.content.title ?? plain(block.kind);
  return element("div", {}, element("p", { class: "quiet" }, title), nested(block));
}

const LISTS = { bulleted_list_item: "ul", numbered_list_item: "ol" };

export function blocks(given) {
  const drawn = element("div", { class: "blocks" });
  for (const block of given) {
    const list = LISTS[block.kind];
    if (!list) drawn.append((DRAWN[block.kind] ?? other)(block) ?? "");
    else if (drawn.lastElementChild?.localName === list) drawn.lastElementChild.append(entry(block));
    else drawn.append(element(list, {}, entry(block)));
  }
  return drawn;
}

const nothing = (words) => element("p", { class: "quiet" }, words);

function value({ kind, options }, given) {
  if (given === null || given === undefined) return "";
  const name = (key) => options.find((option) => option.key === key)?.name ?? key;
  if (options.length) return [given].flat().map(name).join(", ");
  if (kind === "checkbox") return given ? "✓" : "";
  if (kind === "datetime") return moment(given);
  if (kind === "url" && SAFE.test(given)) return link(given, given);
  if (kind === "location") return given.label ?? `${given.lat}, ${given.lng}`;
  return typeof given === "object" ? JSON.stringify(given) : String(given);
}

export const rows = ({ fields, records }) => records.map((record) => element("tr", {},
  ...fields.map((field) => element("td", {}, value(field, record.data[field.key])))));

export function records(content) {
  const head = element("tr", {}, ...content.fields.map((field) => element("th", { scope: "col" }, field.label)));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows(content)));
  const empty = content.records.length ? null : nothing("There are no records.");
  return element("div", { class: "wide" }, table, empty);
}

export function children(found) {
  if (!found.length) return nothing("There is nothing in this folder.");
  return element("ul", { class: "list" }, ...found.map((item) => element("li", {},
    element("span", { "aria-hidden": "true" }, item.icon ?? "▫"), ` ${item.title} `,
    element("span", { class: "quiet" }, plain(item.kind)))));
}

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

function size(bytes) {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${step ? (bytes / 1000 ** step).toFixed(1) : bytes} ${UNITS[step]}`;
}

export function file(content, allowed) {
  return element("div", { class: "file" },
    element("p", {}, element("strong", {}, content.name)),
    nothing(`${content.mimeType} · ${size(content.byteSize)} · ${moment(content.createdAt)}`),
    content.downloadUrl
      ? element("a", { class: "action", href: content.downloadUrl, download: content.name }, "Download")
      : nothing(allowed ? "The file is not there." : "This link does not allow downloads."));
}

export async function form(url) {
  const found = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!found?.ok) return nothing("The form is not open to the public.");
  const { data } = await found.json();
  return element("div", {},
    data.description && element("p", {}, data.description),
    element("ol", {}, ...data.fields.map((field) => element("li", {}, field.label,
      field.required && " (required)", field.help && element("p", { class: "quiet" }, field.help)))),
    nothing(`Answers are taken at ${url}/submissions.`));
}
