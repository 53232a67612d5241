// The details of one host, unfolded in the table or on the map.

const MOST_SERVERS = 20; // shown at first

function detailsOf(hosts, host) {
  const list = made("dl", "");
  const entry = (term, ...descriptions) => list.append(made("dt", term), ...descriptions);
  for (const [filter, { decisive, numbers }] of hosts.objectionsTo(host)) {
    const said = numbers.map((number) => {
      const { text, typos } = hosts.reasons.get(number);
      const description = made("dd", text);
      description.append(...typos.map((typo) => made("span", typo, { class: "typo" })));
      return description;
    });
    entry(decisive ? filter : `${filter} (would also reject)`, ...said);
  }
  const weights = hosts.contributionsTo(host);
  if (weights.length) entry("Weight", listOf(weights.map((text) => made("li", text))));
  entry("Free", ...hosts.amountsOf(host).map((text) => made("dd", text)));
  const servers = made("dd", "…");
  entry("Servers", servers);
  showServers(hosts, host, servers);
  entry("Traits", codes(hosts.traitsOf(host)));
  entry("Groups", ...groupsOf(hosts, host));
  return list;
}

function listOf(items) {
  const description = made("dd", "");
  const list = made("ul", "");
  list.append(...items);
  description.append(list);
  return description;
}

function codes(texts) {
  const description = made("dd", texts.length ? "" : "none");
  for (const text of texts) description.append(made("code", text), " ");
  return description;
}

async function showServers(hosts, host, description) {
  try {
    const servers = await hosts.serversOf(host);
    const items = servers.map(([name, flavor]) => {
      const item = made("li", name);
      item.append(" ", made("small", flavor));
      return item;
    });
    if (!items.length) {
      description.textContent = "none";
      return;
    }
    const list = made("ul", "", { class: "servers" });
    list.append(...items.slice(0, MOST_SERVERS));
    description.replaceChildren(list);
    if (items.length > MOST_SERVERS) {
      description.append(rest(items.length, () => list.append(...items.slice(MOST_SERVERS))));
    }
  } catch (error) {
    description.textContent = `this browser cannot read the servers: ${error.message}`;
  }
}

function groupsOf(hosts, host) {
  const said = hosts.groupsOf[host].map((number) => {
    const key = hosts.data.keys[number];
    const metadata = hosts.main.querySelector(`#${key} .metadata`)?.textContent.trim();
    const name = hosts.groupName(key);
    return made("dd", metadata ? `${name}: ${metadata}` : name);
  });
  return said.length ? said : [made("dd", "none")];
}
