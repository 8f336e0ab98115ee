// The token of a share link stands in the fragment of its address, which browsers send nowhere: it
// goes with the form, and stays in the address.

const form = document.querySelector("form[data-opening]");

/** Sends the token that the address has; one in the query moves to the fragment first. */
function open() {
  const asked = new URLSearchParams(location.search).get("token");
  if (asked) history.replaceState(null, "", `${location.pathname}#${encodeURIComponent(asked)}`);
  const token = decodeURIComponent(location.hash.slice(1));
  if (!token) return;
  form.elements.token.value = token;
  form.action = location.pathname + location.hash;
  form.requestSubmit();
}

if (form.dataset.opening === "yes") open();
window.addEventListener("hashchange", open);
