// The behaviour of console pages that HTML lacks: times, copying, messages, pauses.

const root = document.documentElement;
root.classList.add("script");

// A code of a provider must not stay in the history of the browser.
if (document.querySelector("[data-forget-query]")) history.replaceState(null, "", location.pathname);

/** Times in the zone of the profile, else of the browser: short, and exact on hover. */
const format = (style) => new Intl.DateTimeFormat(root.dataset.language, { ...style, timeZone: root.dataset.zone });
const day = format({ day: "numeric", month: "short" });
const year = format({ day: "numeric", month: "short", year: "numeric" });
const wholeDay = new Intl.DateTimeFormat(root.dataset.language, { dateStyle: "medium", timeZone: "UTC" });
const clock = format({ hour: "2-digit", minute: "2-digit" });
const exact = format({ dateStyle: "full", timeStyle: "long" });
const STEPS = [[60, "s", 1], [3600, "min", 60], [86_400, "h", 3600]];

/** `12 s ago`, `in 6 h`; null for what is more than a day away. */
function near(seconds) {
  const distance = Math.abs(seconds);
  if (distance < 1) return "now";
  for (const [bound, unit, size] of STEPS) {
    const count = `${Math.floor(distance / size)} ${unit}`;
    if (distance < bound) return seconds < 0 ? `${count} ago` : `in ${count}`;
  }
  return null;
}

/** `27 Nov, 05:00`. */
function placed(moment, now) {
  const date = moment.getFullYear() === now.getFullYear() ? day : year;
  return `${date.format(moment)}, ${clock.format(moment)}`;
}

function shown(moment) {
  const now = new Date();
  return near((moment - now) / 1000) ?? placed(moment, now);
}

function showTime(time) {
  const moment = new Date(time.dateTime);
  if (Number.isNaN(moment.getTime())) return;
  if (time.dateTime.length === 10) {
    // A day is the same in every zone.
    const text = wholeDay.format(moment);
    if (time.textContent !== text) time.textContent = text;
    return;
  }
  const text = time.dataset.style === "clock" ? placed(moment, new Date()) : shown(moment);
  if (time.textContent !== text) time.textContent = text;
  const title = `${exact.format(moment)}\n${time.dateTime}`;
  if (time.title !== title) time.title = title;
}

const showTimes = () => document.querySelectorAll("time[datetime]").forEach(showTime);

/** A button beside each command that copies it. */
function copyable(code) {
  if (code.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  code.append(button);
}

/** Copies a command; where a page may not, it is marked for the person to copy. */
async function copyText(button) {
  const parts = [...button.parentElement.childNodes].filter((one) => one !== button);
  try {
    await navigator.clipboard.writeText(parts.map((one) => one.textContent).join(""));
    button.textContent = "Copied";
  } catch {
    getSelection().setBaseAndExtent(parts[0], 0, button.parentElement, parts.length);
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function enhance() {
  showTimes();
  document.querySelectorAll("[data-copy]").forEach(copyable);
}

// Before anything is painted, also what htmx has just brought in.
new MutationObserver(enhance).observe(document.body, { childList: true, subtree: true, characterData: true });
setInterval(showTimes, 20_000);
enhance();

/** On a narrow screen the places of the console are a menu. */
function showPlaces(isOpen) {
  const button = document.querySelector(".switcher-button");
  button?.setAttribute("aria-expanded", isOpen);
  document.getElementById("places")?.classList.toggle("open", isOpen);
  return button;
}

document.addEventListener("click", async (event) => {
  const opens = event.target.closest(".switcher-button")?.getAttribute("aria-expanded") === "false";
  showPlaces(opens);
  const dismiss = event.target.closest(".dismiss");
  if (dismiss) dismiss.closest(".toast").remove();
  const copy = event.target.closest(".copy");
  if (copy) await copyText(copy);
  // An entry closes its menu, where the focus returns to after what it opens.
  const chosen = event.target.closest(".more-actions .menu :is(a, button)")?.closest("details");
  if (chosen) {
    chosen.open = false;
    chosen.querySelector("summary").focus();
  }
  // A menu closes at a click beside it.
  for (const menu of document.querySelectorAll("details:is(.switcher, .confirm)[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

const isTyping = (element) => element.closest?.("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !isTyping(event.target) && !document.querySelector("dialog[open]")) {
    document.getElementById("shortcuts")?.showModal();
  }
  if (event.key === "Escape") {
    if (document.querySelector("#places.open")) showPlaces(false).focus();
    for (const menu of document.querySelectorAll("details:is(.switcher, .confirm)[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});

/** True when a field has another value than the page gave it. */
function isWritten(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field instanceof HTMLSelectElement) {
    const given = [...field.options].some((one) => one.defaultSelected);
    return given && [...field.options].some((one) => one.selected !== one.defaultSelected)
      || (!given && field.selectedIndex > 0);
  }
  return field.value !== field.defaultValue;
}
const FIELDS = "input:not([type=hidden]), textarea";

/** True when a form has something to lose: written fields, or entries that were refused. */
const isUnsaved = (form) => form.checkVisibility()
  && (form.matches("[data-unsaved], .again") || form.querySelector("[aria-invalid=true], .fault") !== null
    || [...form.elements].some((field) => field.matches(`${FIELDS}, select`) && isWritten(field)));
const hasUnsaved = () => [...document.querySelectorAll("form[method=post]:not(.filters, [data-leave])")].some(isUnsaved);

// Leaving a page asks once about what is not saved; sending a form is no leaving.
let isSent = false;
addEventListener("submit", (event) => { isSent = !event.defaultPrevented; });
addEventListener("pageshow", () => { isSent = false; });
addEventListener("beforeunload", (event) => { if (!isSent && hasUnsaved()) event.preventDefault(); });
document.addEventListener("htmx:before:request", (event) => {
  const replacesPage = event.target.getAttribute?.("hx-target") === "body";
  if (replacesPage && hasUnsaved() && !confirm("Leave this page? Your changes are not saved.")) event.preventDefault();
});

/** True when a refresh would disturb: the page is hidden, or a person is about to do something there. */
const busy = (part) => document.hidden
  || document.querySelector("dialog[open], [popover]:popover-open") !== null
  || [...part.querySelectorAll(FIELDS)].some((field) => isWritten(field) || field === document.activeElement);

document.addEventListener("htmx:before:request", (event) => {
  const part = event.target;
  if (part.dataset?.refresh !== undefined && busy(part)) event.preventDefault();
});

// A choice that was made before htmx was loaded, or that the browser kept over a reload, is sent now.
const sentChoices = new WeakSet();
document.addEventListener("htmx:before:request", (event) => { sentChoices.add(event.target); });
addEventListener("pageshow", () => {
  for (const choice of document.querySelectorAll("select[hx-trigger=change]")) {
    if (isWritten(choice) && !sentChoices.has(choice)) choice.dispatchEvent(new Event("change", { bubbles: true }));
  }
});

// A form that was taken has done what it is for, and so has the dialog around it.
document.addEventListener("htmx:after:request", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
  if (!(event.detail?.ctx?.response?.raw?.ok)) return;
  form.reset();
  renewKey(form);
  form.closest("dialog")?.close();
});

/** The next submission of a form is another call. */
function renewKey(form) {
  const key = form.elements.namedItem("idempotencyKey");
  if (key) key.value = [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16)).join("");
}

/*
 * While a part of a form is replaced, as by a button that adds a row: what is typed meanwhile is sent
 * once more instead of being replaced, and buttons that are pressed wait until the new part is there.
 */
const replacing = new Map();
const contentOf = (form) => JSON.stringify([...new FormData(form)].filter(([name]) => name !== "idempotencyKey").map(([name, value]) => [name, String(value)]));
const formOf = (element) => element.closest?.("form[method=post]") ?? null;

document.addEventListener("htmx:before:request", (event) => {
  const form = formOf(event.target);
  const target = event.detail?.ctx?.target;
  if (!(target instanceof Element) || target === form || !form?.contains(target) || !target.querySelector(`${FIELDS}, select`)) return;
  replacing.set(form, { source: event.target, target, sent: contentOf(form), focus: replacing.get(form)?.focus ?? document.activeElement, next: replacing.get(form)?.next });
  renewKey(form);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button");
  const part = button?.type === "submit" && replacing.get(button.form);
  if (!part || part.isRepeated) return;
  event.preventDefault();
  event.stopPropagation();
  part.next = { name: button.name, value: button.value };
}, true);

document.addEventListener("htmx:before:swap", (event) => {
  const form = formOf(event.target);
  const part = replacing.get(form);
  if (!part || event.detail.ctx.target !== part.target) return;
  if (contentOf(form) !== part.sent) {
    part.isLate = true;
    event.preventDefault();
    return;
  }
  const active = document.activeElement;
  const written = active !== part.focus && part.target.contains(active) ? { name: active.name, start: active.selectionStart, end: active.selectionEnd } : null;
  new MutationObserver((_, observer) => {
    if (part.target.isConnected) return;
    observer.disconnect();
    // The person is elsewhere than where the new part would begin.
    if (written) form.querySelectorAll("[autofocus]").forEach((one) => one.removeAttribute("autofocus"));
    const field = written && [...form.elements].find((one) => one.name === written.name);
    field?.focus({ preventScroll: true });
    if (field && Number.isInteger(written.start)) field.setSelectionRange(written.start, written.end);
    finishReplacement(form, part);
  }).observe(form, { childList: true, subtree: true });
});

/** Presses what waited; a button of a row does not wait, since its row may be another one now. */
function finishReplacement(form, { next }) {
  replacing.delete(form);
  if (!next || /\.\d+$/.test(next.value)) return;
  [...form.querySelectorAll("button[type=submit]")].find((one) => one.name === next.name && one.value === next.value)?.click();
}

document.addEventListener("htmx:finally:request", (event) => {
  const form = formOf(event.target);
  const part = replacing.get(form);
  if (!part || part.source !== event.target || !part.target.isConnected) return;
  if (!part.isLate) return finishReplacement(form, part);
  Object.assign(part, { isLate: false, isRepeated: true });
  if (part.source.matches("select")) part.source.dispatchEvent(new Event("change", { bubbles: true }));
  else part.source.click();
});

// Messages of success go by themselves; what went wrong stays until it is dismissed.
new MutationObserver((changes) => {
  for (const toast of changes.flatMap((one) => [...one.addedNodes])) {
    if (toast.dataset?.kind === "success") setTimeout(() => toast.remove(), 6000);
  }
}).observe(document.getElementById("toasts") ?? document.createElement("div"), { childList: true });
