// The table of the room for all flavors: a row for each set of hosts, a column for each flavor.

const MOST_ROWS = 50; // shown at first
const OF_NAME = 170; // pixels of the column with the names
const OF_FLAVOR = 100; // pixels that the column of a flavor needs
const NOWHERE = "fits no host";

class RoomTable {
  constructor(main) {
    this.data = JSON.parse(main.querySelector("#room-data").textContent);
    this.main = main;
    this.table = main.querySelector("#room");
    this.rowField = main.querySelector("#find-row");
    this.flavorField = main.querySelector("#find-flavor");
    this.count = main.querySelector("#count");
    [this.before, this.after] = main.querySelectorAll(".turn button");
    this.shown = main.querySelector(".turn span");
    this.total = this.data.names.length - 1;
    this.described = this.data.flavors.map((name, flavor) =>
      this.fitsOn(flavor) ? name : `${name} ${NOWHERE}`,
    );
    this.most = MOST_ROWS;
    this.first = 0; // of the flavors that are shown
    this.all = main.querySelector(".rest");
    this.rowField.addEventListener("input", () => this.show());
    this.flavorField.addEventListener("input", () => {
      this.first = 0;
      this.show();
    });
    this.before.addEventListener("click", () => this.turn(-this.across));
    this.after.addEventListener("click", () => this.turn(this.across));
    this.all.addEventListener("click", () => {
      this.most = Infinity;
      this.show();
    });
    addEventListener("resize", () => this.show());
    this.show();
  }

  /** Returns the number of all hosts that the flavor fits. */
  fitsOn(flavor) {
    return this.data.fit[flavor][this.total];
  }

  get across() {
    return Math.max(1, Math.floor((this.table.parentElement.clientWidth - OF_NAME) / OF_FLAVOR));
  }

  turn(by) {
    this.first = Math.max(0, this.first + by);
    this.show();
  }

  show() {
    const { data, first, across } = this;
    const flavors = found(this.described, this.flavorField.value);
    const nowhere = flavors.filter((flavor) => !this.fitsOn(flavor)).length;
    const rows = found(data.names.slice(0, this.total), this.rowField.value);
    const columns = flavors.slice(first, first + across);
    const most = rows.length === this.most + 1 ? Infinity : this.most;
    const head = made("tr", "");
    head.append(made("th", this.table.dataset.name, { scope: "col" }));
    for (const flavor of columns) head.append(this.headOf(flavor));
    this.table.tHead.replaceChildren(head);
    this.table.tBodies[0].replaceChildren(
      ...[this.total, ...rows.slice(0, most)].map((row) => this.rowOf(row, columns)),
    );
    this.all.hidden = rows.length <= most;
    this.all.textContent = `Show all ${written(rows.length)}`;
    this.count.textContent = [
      `${written(rows.length)} of ${counted(this.total, "row")}`,
      `${written(flavors.length)} of ${counted(data.flavors.length, "flavor")}`,
      ...(nowhere ? [`${written(nowhere)} of them ${nowhere === 1 ? NOWHERE : "fit no host"}`] : []),
    ].join(", ");
    this.before.disabled = first === 0;
    this.after.disabled = first + across >= flavors.length;
    this.before.parentElement.hidden = this.before.disabled && this.after.disabled;
    const last = Math.min(first + across, flavors.length);
    const range = `${written(first + 1)} to ${written(last)}`;
    this.shown.textContent = `Flavors ${range} of ${written(flavors.length)}`;
  }

  headOf(flavor) {
    const name = this.data.flavors[flavor];
    const head = made("th", "", { scope: "col", class: "number" });
    head.append(made("a", name, { href: `/?${new URLSearchParams({ flavor: name })}` }));
    if (!this.fitsOn(flavor)) head.append(" ", made("small", NOWHERE));
    return head;
  }

  rowOf(row, columns) {
    const { names, hosts, fit, more, at_least: least } = this.data;
    const line = made("tr", "", row === this.total ? { class: "total" } : {});
    const name = made("th", names[row], { scope: "row" });
    name.append(" ", made("small", counted(hosts[row], "host")));
    line.append(name);
    for (const flavor of columns) {
      const fitting = fit[flavor][row];
      const cell = made("td", "", { class: fitting ? "number" : "number nothing" });
      if (least[flavor].includes(row)) {
        const sign = made("span", "≥", { "aria-hidden": "true" });
        cell.append(made("span", "at least", { class: "unseen" }), " ", sign, " ");
      }
      const where = made("small", `on ${counted(fitting, "host")}`);
      cell.append(made("b", written(more[flavor][row])), " ", where);
      cell.style.setProperty("--part", `${hosts[row] ? (100 * fitting) / hosts[row] : 0}%`);
      line.append(cell);
    }
    return line;
  }
}

/** Returns the numbers of the names that have all typed words. */
function found(names, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const numbers = [...names.keys()];
  return numbers.filter((each) => words.every((word) => names[each].toLowerCase().includes(word)));
}
