// Questions to the writer: one dialog at a time, with a form of some fields.

import { button, Modal } from "/pages/views/controls.js";

const { h, reactive } = globalThis.Vue;

/** A dialog with a form of some fields; resolves with their values, or null. */
export const dialogs = reactive({ open: null });
export const ask = (form) => new Promise((done) => {
  dialogs.open = { ...form, done: (values) => { dialogs.open = null; done(values); } };
});

export const Dialogs = {
  setup: () => () => {
    const form = dialogs.open;
    if (!form) return null;
    return h(Modal, { title: form.title, name: "note-dialog", key: form.title, onClose: () => form.done(null) }, () => h("form", {
      class: "view-form", onSubmit: (event) => {
        event.preventDefault();
        form.done(Object.fromEntries(new FormData(event.target)));
      },
    }, [
      ...form.fields.map(({ name, label, type = "text", value = "", options, ...more }, at) => h("label", { class: "field", key: name }, [
        h("span", null, label),
        options ? h("select", { name, ...more }, options.map((one) => h("option", { value: one.key, key: one.key, selected: one.key === value }, one.label)))
          : h("input", { name, type, ...(type === "file" ? {} : { value, maxlength: 2048 }), autocomplete: "off", autofocus: at === 0, ...more }),
      ])),
      h("div", { class: "buttons" }, [button("Cancel", () => form.done(null)), h("button", { type: "submit", class: "button primary" }, form.action ?? "Save")]),
    ]));
  },
};
