// The page for changes: maps of the hosts before and after them, and the form of the live page.

class ChangedHosts {
  /** `conditions` has, for each flavor, the letters of the hosts before and after. */
  constructor(data, conditions) {
    this.data = data;
    this.names = data.hosts;
    this.conditions = conditions;
  }

  get count() {
    return this.names.length;
  }

  get meanings() {
    return { ...CONDITIONS, r: ["rejected", "does not fit", "do not fit"] };
  }

  detailsOf(host) {
    const list = made("dl", "");
    const changed = (from, to) =>
      this.data.flavors.filter((_, flavor) => {
        const [before, after] = this.conditions[flavor];
        return (before[host] === "f") === from && (after[host] === "f") === to;
      });
    for (const [term, names] of [
      ["Fit no more", changed(true, false)],
      ["Fit from now on", changed(false, true)],
    ]) {
      list.append(made("dt", term), codes(names));
    }
    return list;
  }
}

async function showChanges(main) {
  const data = JSON.parse(main.querySelector("#changes-data").textContent);
  const choice = main.querySelector("#map-flavor");
  prepareLists(main);
  if (!choice) return;
  const conditions = await unpacked(data.conditions);
  const hosts = new ChangedHosts(data, conditions);
  const draw = () => {
    main.querySelectorAll("[data-side]").forEach((old, side) => {
      const map = old.cloneNode(); // without the listeners of the map before
      old.replaceWith(map);
      map.className = "map";
      new HostMap(map, hosts, conditions[choice.selectedIndex][side]);
    });
  };
  choice.append(...data.flavors.map((name) => made("option", name)));
  choice.addEventListener("change", draw);
  draw();
}

/** Offers only the values that begin a change of the chosen kind. */
function prepareChanges(form) {
  const option = form.querySelector("select");
  const field = form.querySelector("input[name=value]");
  const names = form.querySelector("datalist");
  const said = form.querySelector("#try-help");
  const all = [...names.children];
  const follow = () => {
    names.replaceChildren(...all.filter((each) => each.dataset.options.split(" ").includes(option.value)));
    const { form: expected, help } = option.selectedOptions[0].dataset;
    field.placeholder = expected;
    said.textContent = `${expected}: ${help}`;
  };
  option.addEventListener("change", follow);
  follow();
}
