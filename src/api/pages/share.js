// The page of a share link: takes the token from the fragment, and shows what the link opens.

import { blocks, children, file, form, records, rows } from "/pages/shared_content.js";

const path = location.pathname;
const SESSION = `share-session ${path}`;
const at = (id) => document.getElementById(id);

/** What shows that the reader may read: a session where there is one, which takes no use. */
const proof = { token: "", session: sessionStorage.getItem(SESSION) };
let cursor = null;

class Refused extends Error {}

const WORDS = {
  404: "This link opens nothing. It may have expired, been revoked or been used up, or its token is wrong.",
  503: "The service does not answer just now. Try again soon.",
};

async function answer(url) {
  const headers = { Accept: "application/json" };
  if (proof.session) headers["X-Share-Session"] = proof.session;
  if (proof.token) headers["X-Share-Token"] = proof.token;
  const found = await fetch(url, { headers, cache: "no-store" }).catch(() => ({ status: 503 }));
  const body = await found.json?.().catch(() => null);
  if (found.ok && body) return body.data;
  throw new Refused(WORDS[found.status] ?? body?.message ?? WORDS[503]);
}

async function visit() {
  const query = new URLSearchParams({ limit: "100" });
  if (cursor) query.set("cursor", cursor);
  const shown = await answer(`${path}?${query}`);
  proof.session = shown.session;
  sessionStorage.setItem(SESSION, shown.session);
  cursor = shown.content.cursor ?? null;
  at("more").hidden = cursor === null;
  return shown;
}

function drawing({ content, allowDownload }) {
  if (content.blocks) return blocks(content.blocks);
  if (content.fields) return records(content);
  if (content.children) return children(content.children);
  if (content.formUrl) return form(content.formUrl);
  return file(content, allowDownload);
}

function ask(message) {
  at("main").hidden = true;
  at("entry").hidden = false;
  at("refusal").textContent = message;
  at("token").focus();
}

async function open() {
  if (!proof.token && !proof.session) return ask("");
  try {
    const shown = await visit();
    const { item } = shown;
    document.title = item.title;
    at("icon").textContent = item.icon ?? "";
    at("title").textContent = item.title;
    at("kind").textContent = `A shared ${item.kind}`;
    at("content").replaceChildren(await drawing(shown));
    at("entry").hidden = true;
    at("main").hidden = false;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    proof.session = null;
    sessionStorage.removeItem(SESSION);
    ask(error.message);
  }
}

at("more").addEventListener("click", async () => {
  at("problem").hidden = true;
  try {
    const { content } = await visit();
    if (content.fields) at("content").querySelector("tbody").append(...rows(content));
    else at("content").querySelector("ul").append(...children(content.children).children);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    at("problem").textContent = error.message;
    at("problem").hidden = false;
  }
});
at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  proof.token = at("token").value.trim();
  at("token").value = "";
  open();
});
window.addEventListener("hashchange", () => location.reload());

/** A token that came in the query goes on in the fragment, which is not sent anywhere. */
const asked = new URLSearchParams(location.search).get("token");
if (asked) history.replaceState(null, "", `${path}#${encodeURIComponent(asked)}`);
proof.token = decodeURIComponent(location.hash.slice(1)).replace(/^token=/, "");
open();
