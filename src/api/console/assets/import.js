// A file may be dropped anywhere on the page; one that is too large is refused before it is sent.

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
