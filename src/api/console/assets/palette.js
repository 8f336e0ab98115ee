// The palette: `/` or Ctrl-K opens the search over the page, arrows choose, Enter goes there.

const palette = document.getElementById("palette");
const writes = (element) => element?.closest("input, textarea, select, [contenteditable]");

function open() {
  if (palette.open) return;
  palette.showModal();
  const input = palette.querySelector("input");
  input.select();
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function move(by) {
  const places = [palette.querySelector("input"), ...palette.querySelectorAll(".hits a")];
  const at = places.indexOf(document.activeElement);
  places[(at + by + places.length) % places.length]?.focus();
}

if (palette) {
  document.addEventListener("keydown", (event) => {
    const isCtrlK = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !writes(event.target);
    if (isCtrlK || isSlash) {
      event.preventDefault();
      open();
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]")) return;
    event.preventDefault();
    open();
  });
  palette.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && event.target.matches("input")) {
      const first = palette.querySelector(".hits a");
      if (first) {
        event.preventDefault();
        first.click();
      }
    }
  });
}
