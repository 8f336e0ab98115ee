// The search of the documentation: through an index that the server makes, by mouse and keys.

const search = document.querySelector("search");
const input = document.getElementById("search");
const hits = document.getElementById("hits");
const MOST = 12;
let index = null;

search.hidden = false;

/** The score of an entry for the words; 0 when a word is not in it. */
function rank(entry, words) {
  const title = entry.title.toLowerCase();
  const text = `${title} ${entry.section} ${entry.text}`.toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (!text.includes(word)) return 0;
    sum += title === word ? 8 : title.startsWith(word) ? 4 : title.includes(word) ? 2 : 1;
  }
  return sum;
}

function shown(entry) {
  const link = document.createElement("a");
  link.href = entry.path;
  link.append(Object.assign(document.createElement("b"), { textContent: entry.title }));
  link.append(Object.assign(document.createElement("span"), { textContent: entry.section }));
  const item = document.createElement("li");
  item.append(link);
  return item;
}

async function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  index ??= await (await fetch("/docs/search.json")).json();
  const found = index.map((entry) => [rank(entry, words), entry]).filter(([sum]) => sum > 0);
  found.sort(([a], [b]) => b - a);
  const items = found.slice(0, MOST).map(([, entry]) => shown(entry));
  if (!items.length) items.push(Object.assign(document.createElement("li"), { textContent: "No results", className: "none" }));
  hits.replaceChildren(...items);
  hits.hidden = !words.length;
}

input.addEventListener("input", show);
document.addEventListener("keydown", (event) => {
  const links = [...hits.querySelectorAll("a")];
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    input.select();
  } else if (search.contains(event.target) && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    const places = [input, ...links];
    const at = places.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    places[(at + places.length) % places.length].focus();
  } else if (event.key === "Enter" && event.target === input) {
    links[0]?.click();
  } else if (event.key === "Escape") {
    hits.hidden = true;
  }
});
document.addEventListener("click", (event) => {
  if (!search.contains(event.target) || event.target.closest("#hits a")) hits.hidden = true;
});
