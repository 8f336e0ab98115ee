// The field beside the table: its form, its conversion and its deletion are the pages of fields, of
// which the panel shows the parts.

import { Refused } from "/pages/client.js";

const { h, nextTick, onBeforeUnmount, onMounted, ref, watch } = Vue;

const LOOK_AGAIN = 1000;
/** The settings that an undo puts back; the default is a text that the API does not take. */
const PARTS = ["label", "required", "options", "settings"];
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** A page of the console; it `isNext` where a form led to it that was taken. Raises Refused. */
async function pageAt(url, { signal, ...more } = {}) {
  let answer;
  try {
    answer = await fetch(url, { ...more, signal, cache: "no-store", headers: { Accept: "text/html" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The API is not responding.");
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { page, status: answer.status, path: new URL(answer.url).pathname, isNext: answer.redirected };
}

const SHOWN = "#content > :is(.alert, .filters, .empty), #field, #content > #live, #content .actions";

/** The change of a field as an act: what differs is put back, as it was. */
function actOf(table, before, after) {
  const changed = PARTS.filter((key) => !isSame(before[key], after[key]));
  const put = async (field) => {
    const path = `/v1/databases/${field.databaseId}/fields/${field.id}`;
    table.store.takeField(await table.store.call("PATCH", path, Object.fromEntries(changed.map((key) => [key, field[key]]))));
    const kept = new Set((field === before ? after : before).options.map((one) => one.key));
    const isBack = field.options.some((one) => !kept.has(one.key));
    if (isBack) table.say("The option is back. Records that had it stay empty.");
  };
  return changed.length === 0 ? null : { label: `Change of ${after.label}`, undo: () => put(before), redo: () => put(after) };
}

/** The buttons of a row after it was moved or removed by one of them, the best first. */
function followersOf(pressed) {
  const [verb, place] = pressed.split(".");
  const at = Number(place) + ({ up: -1, down: 1 }[verb] ?? 0);
  return verb === "remove" ? [`remove.${at}`, `remove.${at - 1}`, "add"] : [`${verb}.${at}`, `up.${at}`, `down.${at}`];
}

export const FieldPanel = {
  props: ["table"],
  setup({ table }) {
    const place = ref(null);
    const close = ref(null);
    const problem = ref("");
    const own = () => `/databases/${table.store.database.id}/fields/${table.page.field}`;
    const field = () => table.store.fields.find((one) => one.id === table.page.field);
    let reading = new AbortController();
    let timer;

    function leave() {
      clearTimeout(timer);
      reading.abort();
      table.page.field = null;
      table.focus();
    }

    /** Show the parts of a page of the field; a conversion that goes on is looked at again. */
    function show(page, path, followers = []) {
      const parts = [...page.querySelectorAll(SHOWN)].map((one) => document.importNode(one, true));
      place.value.replaceChildren(...parts);
      const next = ["#field [autofocus]", ...followers.map((value) => `button[value="${value}"]:not(:disabled)`)].map((one) => place.value.querySelector(one)).find(Boolean);
      (next ?? (document.activeElement === document.body ? close.value : null))?.focus();
      const isGoing = place.value.querySelector("[data-refresh]") !== null;
      if (isGoing) timer = setTimeout(() => go(path), LOOK_AGAIN);
      else if (path.includes("/conversions/")) renew();
    }

    async function ask(url, more) {
      reading.abort();
      clearTimeout(timer);
      reading = new AbortController();
      problem.value = "";
      try {
        return await pageAt(url, { ...more, signal: reading.signal });
      } catch (error) {
        if (error.name === "AbortError") return null;
        if (error.status === undefined) throw error;
        problem.value = error.message;
        return null;
      }
    }

    async function go(url) {
      const answer = await ask(url);
      if (!answer || !place.value) return;
      if (answer.status >= 400) problem.value = "The field was not found.";
      else show(answer.page, answer.path);
    }

    /** The records are read anew where the values of the field are others. */
    async function renew() {
      await table.store.readFields();
      await table.records.reload();
    }

    async function send(form, submitter) {
      const before = field();
      const to = new URL(form.action).pathname;
      const body = new URLSearchParams(new FormData(form, submitter));
      const answer = await ask(to, { method: "POST", body });
      if (!answer || !place.value) return;
      if (answer.isNext && !to.endsWith("/convert")) await taken(before, to);
      else show(answer.page, answer.path, followersOf(submitter?.value ?? ""));
    }

    async function taken(before, to) {
      if (to.endsWith("/delete")) {
        leave();
        await table.store.readFields();
        table.say(`Deleted ${before.label}`);
        return;
      }
      await table.run(async () => {
        await table.store.readFields();
        return actOf(table, before, field());
      });
      if (!isSame(before.options, field().options)) await table.records.reload();
      table.say(`Saved ${field().label}`);
      leave();
    }

    const submit = (event) => {
      if (event.target.method === "dialog") return;
      event.preventDefault();
      if (event.target.method === "post") send(event.target, event.submitter);
      else go(`${new URL(event.target.action).pathname}?${new URLSearchParams(new FormData(event.target))}`);
    };
    const change = (event) => {
      if (event.target.matches("select[hx-get]")) event.target.form.requestSubmit();
    };
    /** Links to the pages of the field stay here, and the one to the list closes the panel. */
    const click = (event) => {
      const link = event.target.closest("a[href]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const { pathname } = new URL(link.href);
      if (pathname.startsWith(own())) {
        event.preventDefault();
        go(pathname);
      } else if (own().startsWith(`${pathname}/`)) {
        event.preventDefault();
        leave();
      }
    };
    const keydown = (event) => {
      if (event.key !== "Escape" || event.target.closest("dialog")) return;
      event.preventDefault();
      event.stopPropagation();
      leave();
    };
    onMounted(() => close.value.focus());
    watch(() => [table.page.field, table.page.isConverted], ([id]) => { if (id) nextTick(() => go(`${own()}/${table.page.isConverted ? "convert" : "edit"}`)); }, { immediate: true });
    onBeforeUnmount(() => { clearTimeout(timer); reading.abort(); });
    return () => h("aside", { class: "beside field-panel", "aria-label": "Field", onKeydown: keydown }, [
      h("header", null, [
        h("h2", null, field()?.label ?? "Field"),
        h("button", { ref: close, type: "button", class: "button small", "aria-label": "Close field", onClick: leave }, "×"),
      ]),
      problem.value ? h("p", { class: "alert", role: "alert" }, problem.value) : null,
      h("div", { ref: place, class: "beside-content", onSubmit: submit, onChange: change, onClick: click }),
    ]);
  },
};
