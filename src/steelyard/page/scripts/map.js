// The map: a cell for each host, coloured by its condition.

const SIZES = [ // cells are smaller with more hosts
  [400, "large"],
  [3000, "medium"],
  [Infinity, "small"],
];

class HostMap {
  constructor(container, hosts, codes) {
    this.container = container;
    this.hosts = hosts;
    this.codes = codes;
    this.cells = [];
    this.opened = null;
    this.draw();
    this.current = this.cells[0] ?? null;
    if (this.current) this.current.tabIndex = 0;
    container.addEventListener("click", (event) => this.clicked(event));
    container.addEventListener("keydown", (event) => this.pressed(event));
    container.addEventListener("pointerover", ({ target }) => {
      if (target.host !== undefined) target.title = target.getAttribute("aria-label");
    });
  }

  draw() {
    const { tiles, tile } = this.hosts.data;
    const members = tiles.map(() => []);
    tile.forEach((number, host) => members[number].push(host));
    const size = SIZES.find(([most]) => this.hosts.count <= most)[1];
    this.container.classList.add(size);
    const parts = document.createDocumentFragment();
    let around = "";
    tiles.forEach(([name, within], number) => {
      if (within && within !== around) parts.append(made("h3", within));
      around = within;
      parts.append(this.drawTile(within ? `${name}, ${within}` : name, name, members[number]));
    });
    this.container.replaceChildren(parts);
    // Groups of about the same size are as wide, so that they form columns.
    const most = String(Math.max(0, ...members.map((each) => each.length))).length;
    this.container.style.setProperty("--count", `${2 * most + 1}ch`);
  }

  drawTile(label, name, members) {
    const byName = new Intl.Collator("en", { numeric: true }).compare;
    members.sort((one, other) => byName(this.hosts.names[one], this.hosts.names[other]));
    const counts = new Map();
    const field = made("div", "", { class: "cells" });
    for (const host of members) {
      const [style, text] = this.hosts.meanings[this.codes[host]];
      counts.set(style, (counts.get(style) ?? 0) + 1);
      const cell = document.createElement("span");
      cell.className = `cell ${style}`;
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", `${this.hosts.names[host]}: ${text}`);
      cell.tabIndex = -1;
      cell.host = host;
      cell.place = this.cells.push(cell) - 1;
      field.append(cell);
    }
    const said = Object.values(this.hosts.meanings)
      .filter(([style]) => counts.has(style))
      .map(([style, , text]) => `${written(counts.get(style))} ${text}`);
    const group = made("div", "", {
      class: "tile",
      role: "group",
      "aria-label": `${label}: ${counted(members.length, "host")}, ${said.join(", ")}`,
    });
    const fit = (counts.get("chosen") ?? 0) + (counts.get("fits") ?? 0);
    const head = made("p", name, { "aria-hidden": "true" });
    head.append(" ", made("small", `${written(fit)}/${written(members.length)}`));
    const lines = Math.ceil(members.length / Math.ceil(Math.sqrt(members.length) * 1.6));
    field.style.setProperty("--across", Math.ceil(members.length / lines));
    group.append(head, field);
    return group;
  }

  /** Fades the cells of all hosts for which the function returns false; without it, none. */
  emphasise(matches) {
    for (const cell of this.cells) cell.classList.toggle("faded", !(matches?.(cell.host) ?? true));
  }

  // Keyboard

  pressed(event) {
    if (event.key === "Escape" && this.opened) this.close();
    if (event.target.host === undefined || event.altKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") this.open(event.target);
    else if (!this.move(event)) return;
    event.preventDefault();
  }

  /** Moves the focus; returns whether the key does so. */
  move({ key, target, ctrlKey }) {
    const tile = [...target.parentElement.children];
    const first = tile[0].place;
    const last = first + tile.length - 1;
    const all = ctrlKey && ["Home", "End"].includes(key);
    const to = {
      ArrowLeft: () => target.place - 1,
      ArrowRight: () => target.place + 1,
      ArrowUp: () => this.above(target, tile),
      ArrowDown: () => this.below(target, tile),
      Home: () => (all ? 0 : first),
      End: () => (all ? this.cells.length - 1 : last),
      PageUp: () => (this.cells[first - 1]?.parentElement.firstElementChild ?? target).place,
      PageDown: () => last + 1,
    }[key];
    if (!to) return false;
    this.focus(this.cells[to()] ?? target);
    return true;
  }

  above(cell, tile) {
    const across = columnsOf(tile);
    const index = tile.indexOf(cell);
    if (index >= across) return cell.place - across;
    const before = this.cells[tile[0].place - 1];
    if (!before) return cell.place;
    const other = [...before.parentElement.children];
    const start = Math.floor((other.length - 1) / columnsOf(other)) * columnsOf(other);
    return other[Math.min(start + index, other.length - 1)].place;
  }

  below(cell, tile) {
    const across = columnsOf(tile);
    const index = tile.indexOf(cell);
    const lastRow = Math.floor((tile.length - 1) / across);
    if (Math.floor(index / across) < lastRow) {
      return tile[Math.min(index + across, tile.length - 1)].place;
    }
    const after = this.cells[tile.at(-1).place + 1];
    if (!after) return cell.place;
    const other = [...after.parentElement.children];
    const column = Math.min(index % across, columnsOf(other) - 1, other.length - 1);
    return other[column].place;
  }

  focus(cell) {
    this.current.tabIndex = -1;
    this.current = cell;
    cell.tabIndex = 0;
    cell.focus();
  }

  // Details

  clicked({ target }) {
    if (target.host === undefined) return;
    this.focus(target);
    this.open(target);
  }

  open(cell) {
    const again = this.opened?.cell === cell;
    this.close();
    if (again) return;
    const [, text] = this.hosts.meanings[this.codes[cell.host]];
    const panel = made("section", "", { class: "details", "aria-label": "Details of a host" });
    const head = made("h3", `${this.hosts.names[cell.host]}: ${text}`, { tabindex: "-1" });
    const close = made("button", "Close", { type: "button" });
    close.addEventListener("click", () => this.close());
    panel.append(head, close, this.hosts.detailsOf(cell.host));
    lastBeside(cell.closest(".tile")).after(panel);
    cell.setAttribute("aria-expanded", "true");
    this.opened = { cell, panel };
    head.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  close() {
    if (!this.opened) return;
    const { cell, panel } = this.opened;
    this.opened = null;
    panel.remove();
    cell.removeAttribute("aria-expanded");
    cell.focus();
  }
}

/** Returns the number of cells in a row of the tile. */
function columnsOf(cells) {
  const after = cells.findIndex((cell) => cell.offsetTop > cells[0].offsetTop);
  return after < 0 ? cells.length : after;
}

/** Returns the last tile in the same row of tiles. */
function lastBeside(tile) {
  let last = tile;
  for (
    let next = tile.nextElementSibling;
    next?.classList.contains("tile") && next.offsetTop === tile.offsetTop;
    next = next.nextElementSibling
  ) {
    last = next;
  }
  return last;
}
