// The table of hosts, and the groups and causes that narrow it.

const AT_ONCE = 50; // hosts laid out at first; buttons show more, and printing shows all
const MOST_GROUPS = 15; // rows of a table of groups shown at first
const MOST_CAUSES = 8; // also of availability zones
const MOST_REASONS = 20; // reasons of a filter shown at first
const STYLES = 8; // colours and patterns of the segments of bars
const BESIDE = 4; // columns before those of the filters
const WIDE = 560; // pixels that these columns need
const OF_FILTER = 84; // pixels that the column of a filter needs
const MARKS = {
  true: ["no", "✕", "rejected for reason"],
  false: ["also", "△", "would also reject for reason"],
};
const byName = new Intl.Collator("en", { numeric: true }).compare;
const byNumber = (one, other) => (one === other ? 0 : one - other); // infinities may be equal
// The orders of the first and the second click; weights start with the heaviest, the best.
const orders = (column) =>
  column === 3 ? ["descending", "ascending"] : ["ascending", "descending"];

class Matrix {
  constructor(main, hosts, maps) {
    this.main = main;
    this.hosts = hosts;
    this.maps = maps;
    this.table = main.querySelector("#matrix");
    this.body = this.table.tBodies[0];
    this.heads = [...this.table.tHead.rows[0].cells];
    this.search = main.querySelector("#search");
    this.count = main.querySelector("#count");
    this.wide = main.querySelector("#wide");
    this.more = main.querySelector(".more");
    this.rows = [];
    this.details = new Map();
    this.all = Array.from(hosts.names, (_, host) => host);
    this.ordered = this.all;
    this.sorted = null;
    this.narrowed = null;
    this.limit = AT_ONCE;
    this.onPaper = false;
    const reasons = main.querySelector("#reason-lists");
    this.reasons = reasons && new ReasonLists(reasons, hosts);
    this.prepareSorting();
    this.prepareNarrowing();
    this.search.addEventListener("input", () => this.show());
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return; // in some browsers, Escape clears the field itself
      this.search.value = "";
      this.show();
    });
    const [some, every] = this.more.querySelectorAll("button");
    some.addEventListener("click", () => this.showMore(4 * this.limit));
    every.addEventListener("click", () => this.showMore(Infinity));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.fold();
  }

  /** Puts the marks of a host below its name if the columns of all filters are too wide. */
  fold() {
    const wide = WIDE + OF_FILTER * this.hosts.filters.length;
    this.table.classList.toggle("folded", this.main.clientWidth < wide);
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
    const isIn = group && ((host) => this.hosts.isIn(host, group));
    for (const map of this.maps) map.emphasise(isIn);
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
    if (sorted !== null && sorted < this.heads.length) {
      this.sort(sorted, other.heads[sorted].getAttribute("aria-sort"));
    }
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

  get matching() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = this.ordered;
    if (this.narrowed) found = found.filter((host) => this.hosts.isIn(host, this.narrowed));
    if (!words.length) return found;
    const { texts } = this.hosts;
    return found.filter((host) => words.every((word) => texts[host].includes(word)));
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
    this.ordered = this.all.toSorted(
      (one, other) => compare(keys[one], keys[other]) || one - other,
    );
    if (order !== orders(column)[0]) this.ordered.reverse();
    this.sorted = column;
    this.heads[column].setAttribute("aria-sort", order);
  }

  keysOf(column) {
    const { hosts, all } = this;
    if (column === 0) return { keys: hosts.names, compare: byName };
    if (column === 1) {
      return { keys: all.map((host) => hosts.aggregatesOf(host).join(", ")), compare: byName };
    }
    if (column === 2) return { keys: all, compare: byNumber }; // in the order of the verdicts
    if (column === 3) {
      const keys = all.map((host) => Number(hosts.data.weight[host] ?? -Infinity));
      return { keys, compare: (one, other) => byNumber(other, one) };
    }
    const filter = hosts.filters[column - BESIDE];
    return { keys: all.map((host) => hosts.gravityOf(host, filter)), compare: byNumber };
  }

  // Display

  show(said = "") {
    const found = this.matching;
    const limit = this.onPaper ? Infinity : this.limit;
    const rows = document.createDocumentFragment();
    for (const host of found.slice(0, limit)) {
      rows.append(this.rowOf(host));
      if (this.details.has(host)) rows.append(this.details.get(host));
    }
    this.body.replaceChildren(rows);
    const { count } = this.hosts;
    this.more.hidden = found.length <= limit;
    const first = `The first ${written(limit)} of ${counted(found.length, "host")} are shown.`;
    this.more.firstElementChild.textContent = first;
    this.more.lastElementChild.textContent = `Show all ${written(found.length)}`;
    const all = found.length === count;
    const everything = counted(count, "host");
    const shown = all ? everything : `${written(found.length)} of ${everything}`;
    this.count.textContent = said ? `${shown}, ${said}` : shown;
    // On paper the search field is hidden, so the count names the search.
    const typed = this.search.value.trim();
    const only = this.narrowed ? `, only ${this.narrowers.get(this.narrowed).textContent}` : "";
    this.count.dataset.how = typed ? `${only}, with ${typed}` : only;
  }

  showMore(limit) {
    const next = this.matching[this.limit];
    this.limit = limit;
    this.show();
    this.rowOf(next).querySelector("button").focus(); // the pressed button may be hidden now
  }

  /** Shows all matching hosts while the page is printed. */
  printing(on) {
    this.onPaper = on;
    this.reasons?.show(on);
    this.rows = []; // on paper, rows have the contributions to the weight
    this.show();
  }

  rowOf(host) {
    return (this.rows[host] ??= this.drawRow(host));
  }

  drawRow(host) {
    const { hosts } = this;
    const verdict = hosts.verdictOf(host);
    const [style, condition] = hosts.conditionOf(host);
    const row = made("tr", "", verdict === "chosen" ? { class: "chosen" } : {});
    row.host = host;
    const name = made("th", "", { scope: "row" });
    const button = { type: "button", class: "host" };
    button["aria-expanded"] = String(this.details.has(host));
    name.append(made("button", hosts.names[host], button));
    const said = made("td", verdict, { class: style });
    if (verdict !== condition) said.append(" ", made("small", condition));
    row.append(name, made("td", hosts.aggregatesOf(host).join(", ")), said, this.weightOf(host));
    const objections = hosts.objectionsTo(host);
    for (const filter of hosts.filters) row.append(markOf(filter, objections.get(filter)));
    return row;
  }

  /** Returns the cell with the weight and its bar. */
  weightOf(host) {
    const { weight, bar, width, axis } = this.hosts.data;
    if (host >= weight.length) return made("td", "", { class: "weight" });
    const cell = made("td", "", { class: "weight" });
    cell.append(made("span", weightText(weight[host])));
    if (bar[host].length) cell.append(barOf(bar[host], width, axis));
    if (this.onPaper) {
      const list = made("ul", "");
      list.append(...this.hosts.contributionsTo(host).map((text) => made("li", text)));
      cell.append(list);
    }
    return cell;
  }

  clicked(event) {
    const row = event.target.closest("tr");
    if (row?.host === undefined) return; // in the details, where a pressed button may be gone
    const button = row.querySelector("button.host");
    if (event.target !== button && String(getSelection())) return;
    const { host } = row;
    if (this.details.has(host)) {
      this.details.get(host).remove();
      this.details.delete(host);
    } else {
      this.details.set(host, this.detailOf(host));
      row.after(this.details.get(host));
    }
    button.setAttribute("aria-expanded", String(this.details.has(host)));
  }

  detailOf(host) {
    const row = made("tr", "", { class: "detail" });
    const cell = made("td", "", { colspan: this.heads.length });
    cell.append(detailsOf(this.hosts, host));
    row.append(cell);
    return row;
  }
}

/** Returns the cell of a filter: its mark for the host, and the numbers of the reasons. */
function markOf(filter, objection) {
  const cell = made("td", "");
  const [style, sign, words] = objection ? MARKS[objection.decisive] : ["passed", "✓", "passed"];
  cell.className = style;
  const mark = made("span", sign, { "aria-hidden": "true" });
  cell.append(mark, " ", made("span", words, { class: "unseen" }));
  if (objection) {
    cell.dataset.filter = filter;
    cell.append(` ${objection.numbers.join(" ")}`);
  }
  return cell;
}

/** Draws the weight as a bar, which begins at the axis; negative parts lie left of it. */
function barOf(widths, whole, axis) {
  const bar = drawn("svg", {
    class: "weights",
    viewBox: `0 0 ${whole} 10`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const ends = [axis, axis]; // to the left and to the right
  widths.forEach((width, weigher) => {
    if (!width) return;
    const style = weigher % STYLES;
    const side = Number(width > 0);
    const x = side ? ends[side] : ends[side] + width;
    ends[side] += width;
    const place = { x, y: 1, width: Math.abs(width), height: 8 };
    bar.append(drawn("rect", { class: `s${style}`, ...place, fill: `url(#p${style})` }));
  });
  bar.append(drawn("path", { d: `M${axis} 0v10` }));
  return bar;
}

/** The items of a list that are shown: those that match a search, and first only some of them. */
class Cut {
  constructor(items, most, place) {
    this.items = items;
    this.most = most;
    this.button = made("button", "", { type: "button", class: "rest" });
    this.button.addEventListener("click", () => {
      const next = this.matching[this.most];
      this.most = Infinity;
      this.show(this.matching);
      next.querySelector("button")?.focus(); // the pressed button is hidden
    });
    place.append(this.button);
    this.show(items);
  }

  show(matching) {
    this.matching = matching;
    // A button for one item would take its place.
    const most = matching.length === this.most + 1 ? Infinity : this.most;
    const shown = new Set(matching.slice(0, most));
    const found = new Set(matching);
    for (const item of this.items) {
      item.classList.toggle("cut", found.has(item) && !shown.has(item));
      item.classList.toggle("other", !found.has(item));
    }
    this.button.hidden = shown.size === found.size;
    this.button.textContent = `Show all ${written(found.size)}`;
  }
}

/** The reasons of each filter; a button shows those that are cut. */
class ReasonLists {
  constructor(place, hosts) {
    this.place = place;
    this.byFilter = new Map();
    for (const reason of hosts.reasons.values()) {
      if (!this.byFilter.has(reason.filter)) this.byFilter.set(reason.filter, []);
      this.byFilter.get(reason.filter).push(reason);
    }
    this.most = new Map();
    this.show();
  }

  show(all = false) {
    const parts = [];
    for (const [filter, reasons] of this.byFilter) {
      // A button for a single reason would take the place of the reason.
      const fits = all || reasons.length === MOST_REASONS + 1;
      const most = fits ? Infinity : (this.most.get(filter) ?? MOST_REASONS);
      const list = made("ol", "", { class: "reasons" });
      list.append(...reasons.slice(0, most).map(itemOf));
      parts.push(made("h3", filter), list);
      if (reasons.length > most) {
        parts.push(rest(reasons.length, () => {
          this.most.set(filter, Infinity);
          this.show();
        }));
      }
    }
    this.place.replaceChildren(...parts);
  }
}

function itemOf({ number, text, count, typos }) {
  const item = made("li", "", { value: number });
  item.append(made("span", text), " ", made("small", counted(count, "host")));
  item.append(...typos.map((typo) => made("span", typo, { class: "typo" })));
  return item;
}

/** Cuts long lists, and shows the groups that have the typed words. */
function prepareLists(main) {
  const rows = (table) => [...table.tBodies[0].rows];
  for (const table of main.querySelectorAll("table.causes, table.rooms")) {
    new Cut(rows(table), MOST_CAUSES, table.parentElement);
  }
  for (const list of main.querySelectorAll(".reasons")) {
    const place = made("p", "");
    list.after(place);
    new Cut([...list.children], MOST_REASONS, place);
  }
  const groups = Array.from(
    main.querySelectorAll("table.groups"),
    (table) => new Cut(rows(table), MOST_GROUPS, table.parentElement),
  );
  const field = main.querySelector("#find-group");
  const said = main.querySelector("#groups-found");
  field?.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (row) => {
      const metadata = row.querySelector(".metadata")?.textContent ?? "";
      const text = `${row.cells[0].textContent} ${metadata}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    let count = 0;
    for (const each of groups) {
      each.show(each.items.filter(matches));
      count += each.matching.length;
    }
    said.textContent = words.length ? counted(count, "group") : "";
  });
}
