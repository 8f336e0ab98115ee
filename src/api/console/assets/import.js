// A file is chosen or dropped: it goes with the form, in base64.

const form = document.querySelector("[data-import]");
const FORMATS = { csv: "csv", txt: "csv", tsv: "tsv", xlsx: "xlsx", xls: "xls", ods: "ods", json: "json", ndjson: "ndjson" };

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function tell(problem) {
  const place = form.querySelector("[data-problem]");
  place.textContent = problem;
  place.hidden = !problem;
}

async function take(file) {
  const format = FORMATS[file.name.split(".").pop().toLowerCase()];
  if (!format) return tell(`${file.name} is none of the formats that can be read.`);
  if (file.size > Number(form.dataset.most)) {
    return tell(`${file.name} is too large for a page: bring it in from a terminal, as shown below.`);
  }
  if (file.size === 0) return tell(`${file.name} is empty.`);
  tell("");
  form.elements.content.value = await base64(file);
  form.elements.format.value = format;
  form.querySelector("[data-name]").textContent = `${file.name}, ${Math.ceil(file.size / 1000)} kB`;
  form.querySelector("[data-paste]").hidden = true;
  const label = form.elements.label;
  if (label && !label.value) label.value = file.name.replace(/\.[^.]+$/, "");
}

if (form) {
  const drop = form.querySelector(".drop");
  drop.hidden = false;
  drop.querySelector("input").addEventListener("change", (event) => {
    if (event.target.files[0]) take(event.target.files[0]);
  });
  document.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  document.addEventListener("dragleave", () => drop.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}
