// Fields of people and records: titles are suggested as they are typed, and several can be chosen.

let pause = 0;

/** Asks for the records that have the text in their titles. */
async function suggest(input) {
  const answer = await fetch(`${input.dataset.search}?q=${encodeURIComponent(input.value)}`, { headers: { Accept: "text/html" } });
  if (answer.ok && input.isConnected) input.list.innerHTML = await answer.text();
}

/** A choice from the list becomes a box beside the field, which is free for the next. */
function keep(input) {
  const choice = [...(input.list?.options ?? [])].find((one) => one.value === input.value);
  if (!choice?.dataset.id) return;
  const box = document.createElement("input");
  Object.assign(box, { type: "checkbox", name: `${input.name}.${choice.dataset.id}`, checked: true });
  const label = document.createElement("label");
  label.append(box, ` ${choice.value}`);
  let checks = input.parentElement.querySelector(".checks");
  if (!checks) {
    checks = document.createElement("span");
    checks.className = "checks";
    input.before(checks);
  }
  checks.append(label);
  input.value = "";
  input.list.replaceChildren();
}

document.addEventListener("input", (event) => {
  const input = event.target;
  if (!input.dataset?.search) return;
  if (event.inputType === "insertReplacementText" || !(event instanceof InputEvent)) {
    if (input.dataset.many !== undefined) keep(input);
    return;
  }
  clearTimeout(pause);
  pause = setTimeout(() => suggest(input), 150);
});
