// Where a provider sends a user back to: exchanges the code for a connection, in the user's name.

const byId = (id) => document.getElementById(id);
const given = new URLSearchParams(location.search);
// The code must not stay in the history of the browser.
history.replaceState(null, "", location.pathname);

const state = given.get("state") ?? "";
const workspaceId = state.split(".")[0];

function end(outcome, words) {
  byId("entry").hidden = true;
  byId("done").hidden = false;
  byId("outcome").textContent = outcome;
  byId("words").textContent = words;
}

async function finish(token) {
  const answer = await fetch(
    `/v1/workspaces/${encodeURIComponent(workspaceId)}/integrations/oauth/callback`,
    {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ state, code: given.get("code") }),
    },
  );
  const body = await answer.json();
  if (answer.ok) end("Connected", `${body.data.label} is ready to use. You can close this page.`);
  else byId("refusal").textContent = body.message;
}

byId("entry").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("refusal").textContent = "";
  try {
    await finish(byId("token").value);
  } catch {
    byId("refusal").textContent = "Could not reach the server. Try again.";
  }
});

if (state && given.get("code")) {
  byId("entry").hidden = false;
  byId("token").focus();
} else {
  end("Not connected", "Access denied. Start again to retry.");
}
