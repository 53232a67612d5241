// A field of the live page with a list of names: type to find one.

const MOST_NAMES = 12; // shown in the list

class Choice {
  /** Replaces the browser's own list of the field. */
  constructor(field, options) {
    this.field = field;
    this.options = options; // by name, the remark on it
    this.list = made("ul", "", { role: "listbox", id: `${field.id}-list`, hidden: "" });
    this.list.setAttribute("aria-label", field.labels[0].textContent);
    this.more = made("p", "", { class: "remark", role: "status" });
    this.popup = made("div", "", { class: "popup", hidden: "" });
    this.popup.append(this.list, this.more);
    this.active = -1;
    field.removeAttribute("list");
    for (const [name, value] of Object.entries({
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": this.list.id,
    })) {
      field.setAttribute(name, value);
    }
    field.after(this.popup);
    this.chosen = field.value;
    field.addEventListener("focus", () => field.select());
    field.addEventListener("click", () => this.open(""));
    field.addEventListener("input", () => this.open(field.value));
    field.addEventListener("keydown", (event) => this.pressed(event));
    field.addEventListener("blur", () => this.left());
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // keep the focus
    this.list.addEventListener("click", ({ target }) => {
      const item = target.closest("[role=option]");
      if (item) this.choose(item.dataset.name);
    });
  }

  get isOpen() {
    return !this.popup.hidden;
  }

  set value(name) {
    this.chosen = name;
    this.field.value = name;
    this.close();
  }

  open(typed) {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    const names = [...this.options.keys()].filter((name) =>
      words.every((word) => name.toLowerCase().includes(word)),
    );
    const items = names.slice(0, MOST_NAMES).map((name, number) => {
      const item = made("li", name || "none", {
        role: "option",
        id: `${this.list.id}-${number}`,
        "aria-selected": String(name === this.chosen),
      });
      item.dataset.name = name;
      const remark = this.options.get(name);
      if (remark) item.append(" ", made("small", remark));
      return item;
    });
    this.list.replaceChildren(...items);
    const others = names.length - items.length;
    this.more.textContent = names.length
      ? others ? `${written(others)} more: type to find one` : ""
      : "no such name";
    this.list.hidden = !items.length;
    this.popup.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    const exact = items.findIndex((item) => item.dataset.name === typed);
    this.mark(words.length && items.length ? Math.max(exact, 0) : -1);
  }

  close() {
    this.popup.hidden = true;
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.mark(-1);
  }

  mark(number) {
    this.list.children[this.active]?.classList.remove("active");
    this.active = number;
    const item = this.list.children[number];
    item?.classList.add("active");
    if (item) this.field.setAttribute("aria-activedescendant", item.id);
    else this.field.removeAttribute("aria-activedescendant");
  }

  pressed(event) {
    const { key } = event;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step) {
      if (!this.isOpen) this.open("");
      const count = this.list.children.length;
      const from = this.active < 0 && step < 0 ? 0 : this.active;
      if (count) this.mark((from + step + count) % count);
      event.preventDefault();
    } else if (key === "Enter" && this.isOpen && this.active >= 0) {
      this.choose(this.list.children[this.active].dataset.name);
      event.preventDefault();
    } else if (key === "Escape" && this.isOpen) {
      this.value = this.chosen;
      this.field.select();
      event.preventDefault();
    }
  }

  choose(name) {
    const changed = name !== this.chosen;
    this.value = name;
    if (document.activeElement === this.field) this.field.select();
    if (changed) this.field.dispatchEvent(new Event("chosen", { bubbles: true }));
  }

  left() {
    const name = this.field.value.trim();
    if (this.options.has(name)) this.choose(name);
    else this.value = this.chosen;
  }
}
