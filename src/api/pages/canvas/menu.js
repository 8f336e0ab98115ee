// The menu of the canvas, of a node or of a note: by the right button of a mouse, or by the menu key.

const { h, nextTick, onBeforeUnmount, onMounted, ref } = Vue;

/** `items` are `[label, act, keys]`; null is a line between them. Emits `close` (true to give the focus back). */
export const ContextMenu = {
  props: ["items", "x", "y", "label"],
  emits: ["close"],
  setup(props, { emit }) {
    const list = ref(null);
    const place = ref({ left: `${props.x}px`, top: `${props.y}px` });
    const options = () => [...list.value.querySelectorAll("[role=menuitem]")];
    const leave = (event) => { if (!list.value?.contains(event.target)) emit("close", false); };
    onMounted(() => nextTick(() => {
      const { width, height } = list.value.getBoundingClientRect();
      const within = (at, size, most) => `${Math.max(4, Math.min(at, most - size - 4))}px`;
      place.value = { left: within(props.x, width, window.innerWidth), top: within(props.y, height, window.innerHeight) };
      options()[0]?.focus();
      window.addEventListener("pointerdown", leave, true);
    }));
    onBeforeUnmount(() => window.removeEventListener("pointerdown", leave, true));
    function key(event) {
      const all = options();
      const at = all.indexOf(window.document.activeElement);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to !== undefined) all.at(to % all.length).focus();
      else if (event.key === "Escape" || event.key === "Tab") emit("close", true);
      else if (event.key !== "Enter" && event.key !== " ") return;
      else return event.stopPropagation();
      event.preventDefault();
      event.stopPropagation();
    }
    const option = ([label, act, keys]) => h("button", {
      type: "button", role: "menuitem", tabindex: -1, key: label, onClick: () => { emit("close", true); act(); },
    }, [h("span", null, label), keys ? h("kbd", { "aria-hidden": "true" }, keys) : null]);
    return () => h("div", { ref: list, class: "canvas-menu", role: "menu", "aria-label": props.label, style: place.value, onKeydown: key, onContextmenu: (event) => event.preventDefault() },
      props.items.map((one, index) => (one === null ? h("div", { role: "separator", key: index }) : option(one))));
  },
};
