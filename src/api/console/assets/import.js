// Files may be dropped anywhere on the page; too large ones are refused before they are sent. The preview
// of an import follows each choice.

const form = document.querySelector("[data-import]");

function warn(problem) {
  const place = form.querySelector("[data-problem]");
  place.textContent = problem;
  place.hidden = !problem;
}

function check() {
  const file = form.elements.file.files[0];
  const isLarge = file && file.size > Number(form.dataset.most);
  warn(isLarge ? `${file.name} is too large. Split it, or import it from a terminal.` : "");
  return !isLarge;
}

if (form) {
  const drop = form.querySelector(".drop");
  form.elements.file.addEventListener("change", check);
  form.addEventListener("submit", (event) => { if (!check()) event.preventDefault(); });
  document.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  document.addEventListener("dragleave", () => drop.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    form.elements.file.files = event.dataTransfer.files;
    if (check()) form.requestSubmit();
  });
}

// A choice beside the preview is applied at once; kinds and keys of columns are checked at once. Keys go
// through the options of a list one by one: they choose by Enter, or by leaving the list.
const FOCUS = "import-focus";
let lastKey = null;
let chosen = null;
document.addEventListener("keydown", (event) => { lastKey = event.target.matches("select") ? event.key : null; }, true);
document.addEventListener("pointerdown", () => { lastKey = null; }, true);

/** Sends a form; the page that follows has the focus where the person is. */
function follow(place, focus) {
  chosen = null;
  if (focus?.name) sessionStorage.setItem(FOCUS, focus.name);
  place.requestSubmit(place.querySelector("[data-check]"));
}

document.addEventListener("change", (event) => {
  const { target } = event;
  const place = target.closest("[data-follow], form:has([data-check])");
  if (!place || (place.matches(":not([data-follow])") && (!target.matches("select, input[type=checkbox]") || target.name === "mode"))) return;
  if (target.matches("select") && lastKey !== null && lastKey !== "Enter") chosen = { place, target };
  else follow(place, target);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || chosen?.target !== event.target) return;
  event.preventDefault();
  follow(chosen.place, event.target);
});
document.addEventListener("focusout", (event) => { if (chosen?.target === event.target) follow(chosen.place, event.relatedTarget); });

const kept = sessionStorage.getItem(FOCUS);
sessionStorage.removeItem(FOCUS);
if (kept) {
  const back = () => [...document.querySelectorAll("#live [name]")].find((one) => one.name === kept);
  const found = back();
  if (found) found.focus({ preventScroll: true });
  // The preview is still read.
  else {
    const waiting = new MutationObserver(() => {
      const one = back();
      if (!one) return;
      waiting.disconnect();
      if (document.activeElement === document.body) one.focus({ preventScroll: true });
    });
    waiting.observe(document.body, { childList: true, subtree: true });
  }
}
