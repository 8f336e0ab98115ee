// The heads of columns: renamed, resized, moved, frozen and hidden in place; and new fields.

const { h, nextTick, onBeforeUnmount, onMounted, ref } = Vue;

const LEAST = 60;
const MOST = 900;
/** The kinds of a new field that need no further settings; the page of fields has all. */
const KINDS = [
  ["text", "Text"], ["long_text", "Long text"], ["number", "Number"], ["currency", "Currency"], ["percent", "Percent"], ["checkbox", "Checkbox"], ["date", "Date"], ["datetime", "Date and time"],
  ["select", "Select"], ["multi_select", "Multiple select"], ["status", "Status"], ["person", "Person"], ["email", "Email"], ["url", "URL"], ["phone", "Phone"], ["rating", "Rating"], ["duration", "Duration"], ["time", "Time"], ["file", "Files"],
];

/** A menu at an element: it closes by Escape, by a press beside it, and by what is chosen. */
export const Menu = {
  props: ["anchor", "label"],
  emits: ["close"],
  setup(props, { slots, emit }) {
    const root = ref(null);
    const place = ref({});
    const outside = (event) => { if (!root.value?.contains(event.target) && !props.anchor.contains(event.target)) emit("close"); };
    onMounted(() => {
      const at = props.anchor.getBoundingClientRect();
      const box = root.value.getBoundingClientRect();
      place.value = { left: `${Math.max(8, Math.min(at.left, window.innerWidth - box.width - 8))}px`, top: `${at.bottom + box.height + 8 < window.innerHeight ? at.bottom + 2 : Math.max(8, window.innerHeight - box.height - 8)}px` };
      root.value.querySelector("input, button, a")?.focus();
      document.addEventListener("pointerdown", outside, true);
    });
    onBeforeUnmount(() => document.removeEventListener("pointerdown", outside, true));
    const keydown = (event) => {
      event.stopPropagation();
      const entries = [...root.value.querySelectorAll("button:not([disabled]), a, input, select")];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") {
        event.preventDefault();
        emit("close");
        props.anchor.focus();
      } else if (step && event.target.tagName !== "SELECT") {
        event.preventDefault();
        entries.at((entries.indexOf(event.target) + step) % entries.length)?.focus();
      }
    };
    return () => h(Vue.Teleport, { to: "body" }, h("div", { ref: root, class: "sheet-menu", role: "dialog", "aria-label": props.label, style: place.value, onKeydown: keydown, onPointerdown: (event) => event.stopPropagation() }, slots.default()));
  },
};

const entry = (label, onClick, more = {}) => h("button", { type: "button", onClick, ...more }, label);

export const ColumnHead = {
  props: ["table", "field", "at", "left"],
  setup(props) {
    const { table } = props;
    const isOpen = ref(false);
    const isRenamed = ref(false);
    const root = ref(null);
    const button = ref(null);
    const input = ref(null);
    const target = ref(null);

    const close = () => { isOpen.value = false; };
    const then = (act) => () => {
      close();
      act();
      table.focus();
    };
    function rename() {
      close();
      isRenamed.value = true;
      nextTick(() => { input.value.value = props.field.label; input.value.focus(); input.value.select(); });
    }
    function endRename(isSaved) {
      if (!isRenamed.value) return;
      isRenamed.value = false;
      const label = input.value.value.trim();
      if (isSaved && label && label !== props.field.label) table.renameField(props.field, label);
      table.focus();
    }

    function resize(event) {
      event.preventDefault();
      event.stopPropagation();
      const from = event.clientX;
      const width = table.widthOf(props.field);
      const drag = (moved) => table.resize(props.field, Math.min(Math.max(width + moved.clientX - from, LEAST), MOST));
      document.addEventListener("pointermove", drag);
      document.addEventListener("pointerup", () => { document.removeEventListener("pointermove", drag); table.keepLayout(); }, { once: true });
    }
    /** A head that is dragged goes where it is let go; a press alone opens its menu. */
    function press(event) {
      if (event.button !== 0 || event.pointerType !== "mouse" || event.target.closest(".resize, input")) return;
      const from = event.clientX;
      let place = null;
      const drag = (moved) => {
        if (Math.abs(moved.clientX - from) < 6 && place === null) return;
        const over = document.elementFromPoint(moved.clientX, event.clientY)?.closest("[data-head-cell]");
        if (over) place = Number(over.dataset.headCell);
        target.value = place;
        table.aim.value = place;
      };
      document.addEventListener("pointermove", drag);
      document.addEventListener("pointerup", () => {
        document.removeEventListener("pointermove", drag);
        table.aim.value = null;
        if (place !== null && place !== props.at) table.moveColumn(props.field, place);
        // The click after a drag is none.
        if (place !== null) setTimeout(() => { target.value = null; });
      }, { once: true });
    }
    const keydown = (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step && event.altKey) table.moveColumn(props.field, props.at + step, true);
      else if (step && event.shiftKey) { table.resize(props.field, Math.min(Math.max(table.widthOf(props.field) + 20 * step, LEAST), MOST)); table.keepLayout(); }
      else if (step) table.focusHead(props.at + step);
      else if (event.key === "ArrowDown" || event.key === "Escape") table.focus();
      else if (event.key === "F2" && table.store.canDesign) rename();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };

    const menu = () => {
      const { field, at } = props;
      const { store } = table;
      return h(Menu, { anchor: button.value, label: `Field ${field.label}`, onClose: close }, () => [
        entry("Sort ascending", then(() => table.sort(field, "asc"))),
        entry("Sort descending", then(() => table.sort(field, "desc"))),
        store.canWrite ? entry("Edit in selected records…", then(() => table.bulkEdit(field)), { disabled: table.checked.size === 0 || !table.isTyped(field) }) : null,
        h("hr"),
        entry(at < table.frozen.value ? "Unfreeze columns" : "Freeze up to here", then(() => table.freeze(at < table.frozen.value ? 1 : at + 1))),
        at > 0 ? entry("Move left", then(() => table.moveColumn(field, at - 1)), { disabled: at < 2 }) : null,
        at > 0 ? entry("Move right", then(() => table.moveColumn(field, at + 1)), { disabled: at === table.columns.value.length - 1 }) : null,
        at > 0 ? entry("Hide", then(() => table.hide(field))) : null,
        store.canDesign ? [
          h("hr"),
          entry("Rename", rename),
          entry("Settings, options, delete", () => { close(); table.openField(field); }),
          field.key === "title" ? null : entry("Change type", () => { close(); table.openField(field, true); }),
        ] : null,
      ]);
    };

    return () => {
      const { field, at, left } = props;
      const sort = table.sortOf(field);
      return h("div", {
        ref: root, class: ["column-head", { frozen: left !== null, aimed: table.aim.value === at }], role: "columnheader", "aria-colindex": at + 2, "aria-sort": sort ? { asc: "ascending", desc: "descending" }[sort] : undefined,
        "data-head-cell": at, style: left === null ? undefined : { left: `${left}px` }, onPointerdown: press,
      }, [
        isRenamed.value ? h("input", {
          ref: input, type: "text", maxlength: 200, "aria-label": `Name of ${field.label}`,
          onKeydown: (event) => { event.stopPropagation(); if (event.key === "Enter") endRename(true); if (event.key === "Escape") endRename(false); }, onBlur: () => endRename(true),
        }) : h("button", {
          ref: button, type: "button", class: "head-label", tabindex: -1, "data-head": at, "aria-haspopup": "dialog", "aria-expanded": isOpen.value ? "true" : "false", title: field.label,
          onClick: () => { if (target.value === null) isOpen.value = !isOpen.value; }, onDblclick: () => { if (table.store.canDesign) rename(); }, onKeydown: keydown,
        }, [h("span", null, field.label), field.required ? h("span", { class: "quiet", "aria-label": "required" }, " *") : null, sort ? h("span", { "aria-hidden": "true" }, sort === "asc" ? " ↑" : " ↓") : null]),
        h("span", { class: "resize", "aria-hidden": "true", onPointerdown: resize }),
        isOpen.value ? menu() : null,
      ]);
    };
  },
};

export const NewField = {
  props: ["table"],
  setup({ table }) {
    const isOpen = ref(false);
    const button = ref(null);
    const label = ref("");
    const kind = ref("text");
    const options = ref("");
    const problem = ref("");
    async function create(event) {
      event.preventDefault();
      const names = options.value.split(/[,\n]/).map((one) => one.trim()).filter(Boolean);
      const isChoice = ["select", "multi_select", "status"].includes(kind.value);
      try {
        await table.createField({ label: label.value.trim(), kind: kind.value, ...(isChoice && names.length ? { options: names.map((name) => ({ name })) } : {}) });
        isOpen.value = false;
        Object.assign(label, { value: "" });
        options.value = problem.value = "";
      } catch (error) {
        if (error.status === undefined) throw error;
        problem.value = error.message;
      }
    }
    return () => h("div", { class: "column-head new-field", role: "columnheader", "aria-colindex": table.columns.value.length + 2 }, [
      h("button", { ref: button, type: "button", class: "head-label", tabindex: -1, "data-head": table.columns.value.length, "aria-label": "Add a field", "aria-haspopup": "dialog", "aria-expanded": isOpen.value ? "true" : "false", onClick: () => { isOpen.value = !isOpen.value; },
        onKeydown: (event) => { if (event.key === "ArrowLeft") table.focusHead(table.columns.value.length - 1); else if (event.key === "ArrowDown" || event.key === "Escape") table.focus(); } }, "+"),
      isOpen.value ? h(Menu, { anchor: button.value, label: "New field", onClose: () => { isOpen.value = false; } }, () => h("form", { class: "new-field-form", onSubmit: create }, [
        h("label", null, ["Name", h("input", { type: "text", required: true, maxlength: 200, value: label.value, autocomplete: "off", name: "new-field-name", onInput: (event) => { label.value = event.target.value; } })]),
        h("label", null, ["Type", h("select", { value: kind.value, name: "new-field-kind", onChange: (event) => { kind.value = event.target.value; } }, KINDS.map(([name, text]) => h("option", { value: name, key: name }, text)))]),
        ["select", "multi_select", "status"].includes(kind.value) ? h("label", null, ["Options", h("input", { type: "text", value: options.value, placeholder: "Open, Done", autocomplete: "off", onInput: (event) => { options.value = event.target.value; } })]) : null,
        problem.value ? h("p", { class: "problem", role: "alert" }, problem.value) : null,
        h("div", { class: "buttons" }, [h("a", { class: "quiet", href: `/databases/${table.store.database.id}/fields/new` }, "More types"), h("button", { type: "submit", class: "button primary small" }, "Add")]),
      ])) : null,
    ]);
  },
};
