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

// A choice beside the preview is applied at once; kinds and keys of columns are checked at once.
document.addEventListener("change", (event) => {
  const place = event.target.closest("[data-follow], form:has([data-check])");
  if (!place) return;
  if (place.matches("[data-follow]")) place.requestSubmit();
  else if (event.target.matches("select, input[type=checkbox]") && event.target.name !== "mode") place.requestSubmit(place.querySelector("[data-check]"));
});
