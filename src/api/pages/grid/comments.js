// Writing a comment on the record beside the table, with mentions of members after an `@`.

const { computed, h, nextTick, ref } = Vue;

const MOST = 8;
/** Comments that a person has begun, by record, while others are open. */
const drafts = new Map();

/** The `@` and the letters after it that end where one writes; null where none begins a word. */
export function mentionAt(text, caret) {
  const begun = text.slice(0, caret).match(/(?:^|[\s(])@([^\s@]{0,40}(?: [^\s@]{0,40})?)$/u);
  return begun ? { from: caret - begun[1].length - 1, text: begun[1] } : null;
}

/** `record` is commented by its id; `sent` is emitted once the API has taken the words. */
export const CommentForm = {
  props: ["table", "recordId"],
  emits: ["sent"],
  setup(props, { emit }) {
    const { names, store } = props.table;
    const box = ref(null);
    const draft = drafts.get(props.recordId) ?? { text: "", mentioned: new Map() };
    const text = ref(draft.text);
    const begun = ref(null);
    const chosen = ref(0);
    const problem = ref("");
    const isSending = ref(false);
    const hits = computed(() => {
      if (!begun.value) return [];
      const wanted = begun.value.text.toLowerCase();
      return [...names.people.values()].filter((one) => one.label.toLowerCase().includes(wanted)).slice(0, MOST);
    });
    const keep = () => drafts.set(props.recordId, Object.assign(draft, { text: text.value }));

    function write(event) {
      text.value = event.target.value;
      begun.value = mentionAt(text.value, event.target.selectionStart);
      chosen.value = 0;
      keep();
    }
    function mention(person) {
      const { from } = begun.value;
      const caret = box.value.selectionStart;
      text.value = `${text.value.slice(0, from)}@${person.label} ${text.value.slice(caret)}`;
      draft.mentioned.set(person.id, person.label);
      begun.value = null;
      keep();
      nextTick(() => {
        box.value.focus();
        box.value.setSelectionRange(from + person.label.length + 2, from + person.label.length + 2);
      });
    }
    async function send(event) {
      event?.preventDefault();
      const sent = text.value;
      const body = sent.trim();
      if (!body || isSending.value) return;
      isSending.value = true;
      problem.value = "";
      const mentions = [...draft.mentioned].filter(([, label]) => body.includes(`@${label}`)).map(([id]) => id);
      try {
        await store.call("POST", `/v1/records/${props.recordId}/comments`, { body, ...(mentions.length > 0 ? { mentions } : {}) });
        // What was typed while it was sent is the next one.
        text.value = text.value === sent ? "" : text.value.slice(text.value.startsWith(sent) ? sent.length : 0).trimStart();
        keep();
        if (text.value === "") {
          draft.mentioned.clear();
          drafts.delete(props.recordId);
        }
        emit("sent");
      } catch (error) {
        if (error.status === undefined) throw error;
        problem.value = error.message;
      } finally {
        isSending.value = false;
      }
    }
    const keydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (hits.value.length > 0 && step && !event.altKey) chosen.value = (chosen.value + step + hits.value.length) % hits.value.length;
      else if (hits.value.length > 0 && ["Enter", "Tab"].includes(event.key)) mention(hits.value[chosen.value]);
      else if (event.key === "Escape" && begun.value) begun.value = null;
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    return () => h("form", { class: "card say", onSubmit: send }, [
      h("div", { class: "mention-box" }, [
        h("textarea", {
          ref: box, class: "prose", rows: 2, required: true, maxlength: 10_000, placeholder: "Add a comment, @ mentions someone", "aria-label": "Comment", value: text.value,
          "aria-autocomplete": "list", "aria-controls": "mention-hits", "aria-activedescendant": hits.value.length > 0 ? `mention-${chosen.value}` : undefined,
          onInput: write, onKeydown: keydown, onBlur: () => { begun.value = null; },
        }),
        h("ul", { id: "mention-hits", class: "mention-hits", role: "listbox", "aria-label": "Members", hidden: hits.value.length === 0 }, hits.value.map((person, at) => h("li", {
          key: person.id, id: `mention-${at}`, role: "option", "aria-selected": at === chosen.value ? "true" : "false",
          onPointerdown: (event) => { event.preventDefault(); mention(person); },
        }, [person.label, person.hint ? h("span", { class: "quiet" }, ` ${person.hint}`) : null]))),
      ]),
      problem.value ? h("p", { class: "problem", role: "alert" }, problem.value) : null,
      h("button", { type: "submit", class: "button", disabled: isSending.value }, "Comment"),
    ]);
  },
};
