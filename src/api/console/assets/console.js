// What the pages of the console do beyond what HTML can: times, copying, messages, pauses.

const root = document.documentElement;
root.classList.add("script");

/** Times in the reader's zone: short where they stand, exact on hover. */
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const STEPS = [[60, "second", 1], [3600, "minute", 60], [86_400, "hour", 3600]];

function near(seconds) {
  for (const [bound, unit, size] of STEPS) {
    if (Math.abs(seconds) < bound) return relative.format(Math.round(seconds / size), unit);
  }
  return null;
}

function shown(moment) {
  const now = new Date();
  const close = near((moment - now) / 1000);
  if (close !== null) return close;
  const date = moment.getFullYear() === now.getFullYear() ? day : year;
  return `${date.format(moment)}, ${clock.format(moment)}`;
}

function tell(time) {
  const moment = new Date(time.dateTime);
  if (Number.isNaN(moment.getTime())) return;
  const text = shown(moment);
  if (time.textContent !== text) time.textContent = text;
  const title = `${exact.format(moment)}\n${time.dateTime}`;
  if (time.title !== title) time.title = title;
}

const tellAll = () => document.querySelectorAll("time[datetime]").forEach(tell);

/** A button beside each command that copies it. */
function copyable(code) {
  if (code.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  code.append(button);
}

function enhance() {
  tellAll();
  document.querySelectorAll("[data-copy]").forEach(copyable);
}

// Before anything is painted, also what htmx has just brought in.
new MutationObserver(enhance).observe(document.body, { childList: true, subtree: true, characterData: true });
setInterval(tellAll, 20_000);
enhance();

document.addEventListener("click", async (event) => {
  const dismiss = event.target.closest(".dismiss");
  if (dismiss) dismiss.closest(".toast").remove();
  const copy = event.target.closest(".copy");
  if (copy) {
    const text = [...copy.parentElement.childNodes].filter((one) => one !== copy)
      .map((one) => one.textContent).join("");
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  }
  // A menu closes when somebody clicks beside it.
  for (const menu of document.querySelectorAll("details:is(.switcher, .confirm)[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details:is(.switcher, .confirm)[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});

/** Whether a refresh would disturb: nobody looks, or somebody is about to do something there. */
const busy = (part) => document.hidden
  || document.querySelector("dialog[open], [popover]:popover-open") !== null
  || part.contains(document.activeElement?.closest("form"));

document.addEventListener("htmx:before:request", (event) => {
  const part = event.target;
  if (part.dataset?.refresh !== undefined && busy(part)) event.preventDefault();
});

// A dialog has done what it is for once its form was taken.
document.addEventListener("htmx:after:request", (event) => {
  const dialog = event.target.closest?.("dialog");
  if (dialog && event.detail?.ctx?.response?.status < 400) dialog.close();
});

// Messages of success go by themselves; what went wrong stays until it is dismissed.
new MutationObserver((changes) => {
  for (const toast of changes.flatMap((one) => [...one.addedNodes])) {
    if (toast.dataset?.kind === "success") setTimeout(() => toast.remove(), 6000);
  }
}).observe(document.getElementById("toasts") ?? document.createElement("div"), { childList: true });
