// The panel and the dialog of the table: one record beside it, and an edit of many.

import { Refused } from "/pages/client.js";
import { CommentForm } from "./comments.js";
import { isSeveral, OPTIONS, read, sortedOptions } from "./values.js";

const { h, nextTick, onMounted, ref, watch } = Vue;

/** The page of a record without its navigation, beside the table. */
export const BesidePanel = {
  props: ["table"],
  setup({ table }) {
    const place = ref(null);
    const close = ref(null);
    const record = () => table.records.list[table.page.beside];
    /** The form stays while the page around it is read anew. */
    const spot = document.createElement("div");
    let turn = 0;
    async function load() {
      const mine = (turn += 1);
      const shown = record();
      if (!shown) return;
      const answer = await fetch(`/records/${shown.id}`, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== turn || !place.value) return;
      const parts = [...page.querySelectorAll("#content > :is(.properties, section, .empty)")];
      // Its fields are edited in the table, and its ids are those of a page.
      for (const one of parts) one.querySelectorAll(".files form, .upload, dialog").forEach((form) => form.remove());
      const focus = spot.contains(document.activeElement) ? document.activeElement : null;
      place.value.replaceChildren(...parts.map((one) => document.importNode(one, true)));
      place.value.querySelector("#comments form")?.replaceWith(spot);
      focus?.focus({ preventScroll: true });
    }
    const step = (by) => {
      const row = table.page.beside + by;
      if (row < 0 || row >= table.records.list.length) return;
      table.openBeside(row);
      table.select(row, table.selection.col);
      // A button at the end of the rows is disabled, and the keys would go nowhere.
      nextTick(() => { if (document.activeElement === document.body || document.activeElement?.disabled) close.value.focus(); });
    };
    onMounted(() => { load(); close.value.focus(); });
    watch(() => [table.page.beside, record()?.updatedAt], load);
    const leave = () => { table.page.beside = null; table.focus(); };
    const keydown = (event) => {
      if (event.key === "Escape") leave();
      else if (event.altKey && event.key === "ArrowDown") step(1);
      else if (event.altKey && event.key === "ArrowUp") step(-1);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    return () => {
      const one = record();
      return one ? h("aside", { class: "beside", "aria-label": "Record", onKeydown: keydown }, [
        h("header", null, [
          h("button", { type: "button", class: "button small", "aria-label": "Previous record", disabled: table.page.beside === 0, onClick: () => step(-1) }, "↑"),
          h("button", { type: "button", class: "button small", "aria-label": "Next record", disabled: table.page.beside >= table.records.list.length - 1, onClick: () => step(1) }, "↓"),
          h("h2", null, one.title || "Untitled"),
          h("a", { class: "button small", href: `/records/${one.id}` }, "Open"),
          h("button", { ref: close, type: "button", class: "button small", "aria-label": "Close record", onClick: leave }, "×"),
        ]),
        h("div", { ref: place, class: "beside-content" }),
        table.store.canComment ? h(Vue.Teleport, { to: spot }, h(CommentForm, { key: one.id, table, recordId: one.id, onSent: load })) : null,
      ]) : null;
    };
  },
};

const IN_WORDS = { checkbox: "yes or no", date: "2026-01-31", datetime: "2026-01-31 14:30", duration: "H:MM", person: "Name or email address", relation: "Record title" };

/** One value for all selected records. */
export const BulkDialog = {
  props: ["table"],
  setup({ table }) {
    const dialog = ref(null);
    const fields = table.columns.value.filter((one) => table.isTyped(one));
    const key = ref(table.isTyped(table.page.bulk.field) ? table.page.bulk.field.key : fields[0]?.key);
    const text = ref("");
    const options = ref([]);
    const problem = ref("");
    const field = () => fields.find((one) => one.key === key.value);
    onMounted(() => dialog.value.showModal());
    async function valueOf(one) {
      if (OPTIONS.has(one.kind)) return { value: isSeveral(one) ? options.value : options.value[0] ?? null };
      const outcome = read(one, text.value, table.names);
      if (outcome.lookup === undefined) return outcome;
      const titled = (await table.searchRecords(one, outcome.lookup)).filter((record) => record.label === outcome.lookup);
      if (titled.length !== 1) return { problem: titled.length ? "Several records have this title." : "No record has this title." };
      table.names.titles.set(titled[0].id, titled[0].label);
      return { value: [titled[0].id] };
    }
    async function apply(event) {
      event.preventDefault();
      try {
        const outcome = await valueOf(field());
        if (outcome.problem) problem.value = outcome.problem;
        else {
          dialog.value.close();
          await table.applyBulk(field(), outcome.value);
        }
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        problem.value = error.message;
      }
    }
    const control = () => {
      const one = field();
      if (OPTIONS.has(one.kind)) {
        return h("select", { name: "bulk-value", multiple: isSeveral(one), onChange: (event) => { options.value = [...event.target.selectedOptions].map((each) => each.value).filter(Boolean); } },
          [isSeveral(one) ? null : h("option", { value: "" }, "—"), ...sortedOptions(one).map((each) => h("option", { value: each.key, key: each.key }, each.name))]);
      }
      return h(["long_text", "rich_text", "json"].includes(one.kind) ? "textarea" : "input", {
        name: "bulk-value", ...(one.kind.includes("text") && one.kind !== "text" ? { rows: 5 } : { type: "text" }), value: text.value, autocomplete: "off", placeholder: IN_WORDS[one.kind] ?? "Leave empty to clear",
        "aria-invalid": problem.value ? "true" : undefined, onInput: (event) => { text.value = event.target.value; problem.value = ""; },
      });
    };
    return () => h("dialog", { ref: dialog, id: "bulk", "aria-labelledby": "bulk-title", onClose: () => { table.page.bulk = null; table.focus(); } }, [
      h("h2", { id: "bulk-title" }, `Edit ${table.checked.size.toLocaleString()} ${table.checked.size === 1 ? "record" : "records"}`),
      h("form", { onSubmit: apply }, [
        h("label", null, ["Field", h("select", { name: "bulk-field", value: key.value, onChange: (event) => { key.value = event.target.value; text.value = problem.value = ""; options.value = []; } }, fields.map((one) => h("option", { value: one.key, key: one.key }, one.label)))]),
        h("label", null, ["New value", control()]),
        problem.value ? h("p", { class: "problem", role: "alert" }, problem.value) : null,
        h("div", { class: "buttons" }, [h("button", { type: "button", class: "button", onClick: () => dialog.value.close() }, "Cancel"), h("button", { type: "submit", class: "button primary" }, "Save")]),
      ]),
    ]);
  },
};
