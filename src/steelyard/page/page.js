"use strict";

// Interaction: narrow and sort the hosts, unfold their reasons and, on the live page, load another
// decision. Without scripts, the page shows the same content.
{
  document.documentElement.classList.add("scripted");

  const AT_ONCE = 200; // hosts laid out at first; a button shows more, and printing shows all
  // Text of the marks for screen readers; the numbers of the reasons follow.
  const WORDS = { "": "passed", no: "rejected for reason", also: "would also reject for reason" };
  const SOON = 150; // milliseconds to wait for another change of the form before loading
  const byName = new Intl.Collator("en", { numeric: true }).compare;
  // The orders of the first and the second click; weights start with the heaviest, the best.
  const orders = (column) =>
    column === 3 ? ["descending", "ascending"] : ["ascending", "descending"];
  const byNumber = (one, other) => one - other;

  function made(tag, text, attributes = {}) {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  /** Wraps the content of the element in a button. */
  function pressable(element, attributes) {
    const button = made("button", "", { type: "button", ...attributes });
    button.append(...element.childNodes);
    element.append(button);
    return button;
  }

  /** Returns an element of a picture. */
  function drawn(tag, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  const written = (count) => count.toLocaleString("en");
  const hosts = (count) => (count === 1 ? "1 host" : `${written(count)} hosts`);

  class Host {
    constructor(row, place) {
      this.row = row;
      this.place = place;
      this.detail = null;
      this.button = null;
    }

    cell(column) {
      return this.row.cells[column];
    }

    isIn(group) {
      return this.row.dataset.in.split(" ").includes(group);
    }
  }

  class Matrix {
    constructor(main) {
      this.main = main;
      this.table = main.querySelector("#matrix");
      this.body = this.table.tBodies[0];
      this.heads = [...this.table.tHead.rows[0].cells];
      this.search = main.querySelector("#search");
      this.count = main.querySelector("#count");
      this.wide = main.querySelector("#wide");
      this.more = main.querySelector(".more");
      this.hosts = Array.from(this.body.rows, (row, place) => new Host(row, place));
      this.ordered = this.hosts;
      this.sorted = null;
      this.narrowed = null;
      this.limit = AT_ONCE;
      this.onPaper = false;
      for (const region of main.querySelectorAll(".scroll")) region.removeAttribute("tabindex");
      this.prepareSorting();
      this.prepareNarrowing();
      this.search.addEventListener("input", () => this.show());
      this.search.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return; // in some browsers, Escape clears the field itself
        this.search.value = "";
        this.show();
      });
      this.more.querySelector("button").addEventListener("click", () => this.showMore());
      this.body.addEventListener("click", (event) => this.clicked(event));
    }

    // Filtering by group

    prepareNarrowing() {
      this.narrowers = new Map();
      for (const place of this.main.querySelectorAll("[data-narrow]")) {
        const button = pressable(place, { "aria-pressed": "false" });
        const group = place.dataset.narrow;
        this.narrowers.set(group, button);
        button.addEventListener("click", () => {
          this.narrow(group === this.narrowed ? null : group);
          this.search.scrollIntoView({ block: "nearest" });
        });
      }
      this.wide.addEventListener("click", () => {
        this.narrow(null);
        this.search.focus(); // the focused button is now hidden
      });
    }

    narrow(group) {
      this.narrowers.get(this.narrowed)?.setAttribute("aria-pressed", "false");
      this.narrowed = group;
      const button = this.narrowers.get(group);
      button?.setAttribute("aria-pressed", "true");
      this.wide.hidden = !button;
      this.wide.textContent = button ? `Only ${button.textContent} ✕` : "";
      this.wide.setAttribute("aria-label", `Only ${button?.textContent}: show all hosts again`);
      this.show();
    }

    /** Takes over the search, the sorting and the group of the previous table. */
    follow(other) {
      this.search.value = other.search.value;
      const { sorted } = other;
      if (sorted !== null) this.sort(sorted, other.heads[sorted].getAttribute("aria-sort"));
      this.narrow(other.narrowed && this.groupLike(other));
    }

    /** Returns the group that matches the one in the other table, or null. */
    groupLike({ narrowed, narrowers }) {
      const name = narrowers.get(narrowed).textContent;
      // Domains may share a name, and a cause may have another key in another decision.
      const alike = [...this.narrowers.keys()].filter(
        (group) => group[0] === narrowed[0] && this.narrowers.get(group).textContent === name,
      );
      return alike.includes(narrowed) ? narrowed : (alike[0] ?? null);
    }

    /** The searchable text of each host, built on the first search. */
    get texts() {
      if (!this.foundBy) {
        const reasons = new Map();
        for (const item of this.main.querySelectorAll(".reasons > li")) {
          const said = item.firstElementChild.textContent;
          reasons.set(String(item.value), `${item.parentElement.dataset.filter} ${said}`);
        }
        this.foundBy = this.hosts.map(({ row }) => {
          const numbers = Array.from(row.getElementsByTagName("a"), (link) => link.textContent);
          const cells = [0, 1, 2].map((column) => row.cells[column].textContent);
          return [...cells, ...numbers.map((each) => reasons.get(each))].join("\n").toLowerCase();
        });
      }
      return this.foundBy;
    }

    get matching() {
      const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = this.ordered;
      if (this.narrowed) found = found.filter((host) => host.isIn(this.narrowed));
      if (!words.length) return found;
      const texts = this.texts;
      return found.filter((host) => words.every((word) => texts[host.place].includes(word)));
    }

    // Sorting

    prepareSorting() {
      this.heads.forEach((head, column) => {
        pressable(head, {}).addEventListener("click", () => this.sortBy(column));
      });
    }

    sortBy(column) {
      const head = this.heads[column];
      const [first, other] = orders(column);
      const order = head.getAttribute("aria-sort") === first ? other : first;
      this.sort(column, order);
      this.show(`sorted by ${head.textContent}, ${order}`);
    }

    sort(column, order) {
      this.heads[this.sorted]?.removeAttribute("aria-sort");
      const { keys, compare } = this.keysOf(column);
      this.ordered = this.hosts.toSorted(
        (one, other) => compare(keys[one.place], keys[other.place]) || one.place - other.place,
      );
      if (order !== orders(column)[0]) this.ordered.reverse();
      this.sorted = column;
      this.heads[column].setAttribute("aria-sort", order);
    }

    keysOf(column) {
      const cells = this.hosts.map((host) => host.cell(column));
      if (column < 2) return { keys: cells.map((cell) => cell.textContent), compare: byName };
      // The hosts are in the order of their verdicts.
      if (column === 2) return { keys: this.hosts.map((host) => host.place), compare: byNumber };
      if (column === 3) return { keys: cells.map(weightOf), compare: (a, b) => b - a };
      return { keys: cells.map(gravityOf), compare: byNumber };
    }

    // Display

    show(said = "") {
      const found = this.matching;
      const limit = this.onPaper ? Infinity : this.limit;
      const rows = document.createDocumentFragment();
      for (const host of found.slice(0, limit)) {
        if (!host.button) this.enliven(host);
        rows.append(host.row);
        if (host.detail) rows.append(host.detail);
      }
      this.body.replaceChildren(rows);
      this.more.hidden = found.length <= limit;
      const first = `The first ${written(limit)} of ${hosts(found.length)} are shown.`;
      this.more.firstElementChild.textContent = first;
      const all = found.length === this.hosts.length;
      const count = all ? hosts(found.length) : `${written(found.length)} of ${hosts(this.hosts.length)}`;
      this.count.textContent = said ? `${count}, ${said}` : count;
      // On paper the search field is hidden, so the count names the search.
      const typed = this.search.value.trim();
      const only = this.narrowed ? `, only ${this.narrowers.get(this.narrowed).textContent}` : "";
      this.count.dataset.how = typed ? `${only}, with ${typed}` : only;
    }

    showMore() {
      const next = this.matching[this.limit];
      this.limit *= 4;
      this.show();
      next.button.focus(); // the pressed button may be hidden now
    }

    /** Shows all matching hosts while the page is printed. */
    printing(on) {
      this.onPaper = on;
      this.show();
    }

    enliven(host) {
      host.button = pressable(host.cell(0), { class: "host", "aria-expanded": "false" });
      this.drawBar(host.cell(3));
      // Reasons unfold below the host, so the numbers need not be links that take the focus.
      for (const link of host.row.getElementsByTagName("a")) link.removeAttribute("href");
      for (const cell of [...host.row.cells].slice(4)) {
        const mark = made("span", cell.firstChild.data.trim(), { "aria-hidden": "true" });
        const word = made("span", WORDS[cell.className], { class: "unseen" });
        cell.firstChild.replaceWith(mark, " ", word, " ");
      }
    }

    /** Draws the weight as a bar, which begins at the axis; negative parts lie left of it. */
    drawBar(cell) {
      if (!cell.dataset.bar) return;
      const { axis, width: whole } = this.table.dataset;
      const styles = this.main.querySelectorAll("pattern").length;
      const bar = drawn("svg", {
        class: "weights",
        viewBox: `0 0 ${whole} 10`,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      });
      const ends = [Number(axis), Number(axis)]; // to the left and to the right
      cell.dataset.bar.split(",").forEach((written, weigher) => {
        const width = Number(written);
        if (!width) return;
        const style = weigher % styles;
        const side = Number(width > 0);
        const x = side ? ends[side] : ends[side] + width;
        ends[side] += width;
        const place = { x, y: 1, width: Math.abs(width), height: 8 };
        bar.append(drawn("rect", { class: `s${style}`, ...place, fill: `url(#p${style})` }));
      });
      bar.append(drawn("path", { d: `M${axis} 0v10` }));
      cell.firstElementChild.after(bar);
    }

    clicked(event) {
      const row = event.target.closest("tr");
      const host = this.hosts.find((each) => each.row === row);
      if (!host || (event.target !== host.button && String(getSelection()))) return;
      if (host.detail) {
        host.detail.remove();
        host.detail = null;
      } else {
        host.detail = this.detailOf(host);
        host.row.after(host.detail);
      }
      host.button.setAttribute("aria-expanded", String(host.detail !== null));
    }

    detailOf(host) {
      const list = made("dl", "");
      this.heads.slice(4).forEach((head, index) => {
        const cell = host.cell(index + 4);
        const links = [...cell.getElementsByTagName("a")];
        if (!links.length) return;
        const how = cell.className === "no" ? "" : " (would also reject)";
        list.append(made("dt", `${head.textContent}${how}`));
        for (const link of links) {
          const reason = this.main.querySelector(`#r${link.textContent}`).firstElementChild;
          list.append(made("dd", reason.textContent));
        }
      });
      const weights = host.cell(3).querySelector("ul");
      if (weights) {
        const said = made("dd", "");
        said.append(weights.cloneNode(true));
        list.append(made("dt", "Weight"), said);
      }
      list.append(made("dt", "Groups"), ...this.groupsOf(host));
      const row = made("tr", "", { class: "detail" });
      const cell = made("td", "", { colspan: this.heads.length });
      cell.append(list);
      row.append(cell);
      return row;
    }

    groupsOf(host) {
      const keys = host.row.dataset.in.split(" ").filter((key) => key && !key.startsWith("c"));
      const said = keys.map((key) => {
        const group = this.main.querySelector(`#${key}`);
        const metadata = group.querySelector(".metadata")?.textContent.trim();
        const name = group.querySelector("[data-narrow]").textContent;
        return made("dd", metadata ? `${name}: ${metadata}` : name);
      });
      return said.length ? said : [made("dd", "none")];
    }
  }

  function weightOf(cell) {
    const weight = cell.firstElementChild;
    return weight ? Number(weight.textContent) : -Infinity;
  }

  /** Returns a sort key: the decisive rejection first, then other rejections, then passes. */
  function gravityOf(cell) {
    const kind = ["no", "also"].indexOf(cell.className);
    const reason = Number(cell.querySelector("a")?.textContent ?? 0);
    return kind < 0 ? Infinity : kind * 1e9 + reason;
  }

  // Setup, and loading another decision on the live page.

  let main, form, announcement;
  let matrix = null;
  let asking = new AbortController();
  let asked = location.search; // the query of the decision that is shown or being loaded
  let soon; // the timer until the next load

  function begin() {
    const waiting = main.querySelector("tbody.waiting");
    if (!waiting) return; // keep the old matrix: the next decision takes over its search
    try {
      const before = matrix;
      matrix = new Matrix(main);
      if (before) matrix.follow(before);
      else matrix.show();
    } finally {
      waiting.classList.remove("waiting");
    }
  }

  function announce(text, failed) {
    announcement.textContent = text;
    announcement.className = failed ? "failure" : "unseen";
  }

  function refresh(select, fresh) {
    const values = (each) => Array.from(each.options, (option) => option.value).join("\0");
    const { value } = fresh;
    if (values(select) !== values(fresh)) select.replaceChildren(...fresh.children);
    select.value = value;
  }

  function put(page) {
    document.title = page.title;
    document.querySelector(".skip").textContent = page.querySelector(".skip").textContent;
    main.replaceChildren(...page.querySelector("main").childNodes);
    begin();
    for (const select of form.querySelectorAll("select")) {
      const fresh = page.getElementById(select.id);
      if (fresh) refresh(select, fresh);
    }
    const said = main.querySelectorAll("h1, .lead, .problem");
    announce(Array.from(said, (each) => each.textContent).join(". "));
  }

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    main.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(asked || "?", { signal });
      put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch (error) {
      if (signal.aborted) return; // a newer request has replaced this one
      announce(`No answer (${error.message}); is steelyard serve still running?`, true);
    }
    main.removeAttribute("aria-busy");
  }

  function settled() {
    clearTimeout(soon);
    soon = undefined;
    ask();
  }

  addEventListener("beforeprint", () => matrix?.printing(true));
  addEventListener("afterprint", () => matrix?.printing(false));

  addEventListener("DOMContentLoaded", () => {
    main = document.querySelector("main");
    form = document.querySelector("#ask");
    announcement = document.querySelector("#announcement");
    begin();
    if (!form) return;
    form.addEventListener("change", () => {
      // Moving through the flavors with the keyboard loads only the last one.
      const address = `?${new URLSearchParams(new FormData(form))}`;
      if (soon) history.replaceState(null, "", address);
      else history.pushState(null, "", address);
      asked = location.search;
      clearTimeout(soon);
      soon = setTimeout(settled, SOON);
    });
    addEventListener("popstate", () => {
      if (location.search === asked) return; // only the fragment has changed
      asked = location.search;
      settled();
    });
  });
}
