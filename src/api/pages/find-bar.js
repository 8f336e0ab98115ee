// A bar that finds a text: how many places have it, and one after the other.

const { h, onMounted, ref, shallowRef } = globalThis.Vue;

/**
 * `search(text)` gives the places that have a text, `first(places)` the index of the one to begin with,
 * and `show(place)` leads to one. Emits `close`. `renew` searches once more, after something changed.
 */
export const FindBar = {
  props: { label: String, search: Function, show: Function, first: { type: Function, default: () => 0 }, begun: { type: String, default: "" }, note: { type: String, default: "" } },
  emits: ["close"],
  setup(props, { emit, expose }) {
    const input = ref(null);
    const text = ref(props.begun);
    const places = shallowRef([]);
    const at = ref(-1);
    function go(to) {
      if (places.value.length === 0) return;
      at.value = (to + places.value.length) % places.value.length;
      props.show(places.value[at.value]);
    }
    function find(isShown = true) {
      places.value = props.search(text.value);
      at.value = places.value.length > 0 ? props.first(places.value) : -1;
      if (isShown) go(at.value);
    }
    const focus = () => {
      input.value.focus();
      input.value.select();
    };
    onMounted(() => {
      focus();
      if (text.value) find();
    });
    expose({ focus, renew: () => find(false) });
    const count = () => {
      if (!text.value.trim()) return "";
      const note = props.note ? ` ${props.note}` : "";
      return places.value.length === 0 ? `No results${note}` : `${at.value + 1} of ${places.value.length}${note}`;
    };
    function keydown(event) {
      event.stopPropagation();
      const isFind = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f";
      if (event.key === "Escape") emit("close");
      else if (event.key === "Enter" && event.shiftKey) go(at.value - 1);
      else if (isFind) focus();
      else return;
      event.preventDefault();
    }
    return () => h("form", { class: "find-bar", role: "search", "aria-label": props.label, onSubmit: (event) => { event.preventDefault(); go(at.value + 1); }, onKeydown: keydown }, [
      h("input", { ref: input, type: "search", "aria-label": props.label, placeholder: props.label, value: text.value, autocomplete: "off", spellcheck: "false", onInput: (event) => { text.value = event.target.value; find(); } }),
      h("span", { class: "quiet", role: "status" }, count()),
      h("button", { type: "button", class: "button small", "aria-label": "Previous result", title: "Previous (Shift+Enter)", onClick: () => go(at.value - 1) }, "↑"),
      h("button", { type: "submit", class: "button small", "aria-label": "Next result", title: "Next (Enter)" }, "↓"),
      h("button", { type: "button", class: "button small", "aria-label": "Close find", title: "Close (Esc)", onClick: () => emit("close") }, "×"),
    ]);
  },
};
