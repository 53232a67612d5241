// The hosts of the page, read from the columns of its data.

// The style of each condition, its text, and its text behind a number of hosts.
const CONDITIONS = {
  c: ["chosen", "chosen", "chosen"],
  f: ["fits", "fits", "fit"],
  l: ["full", "full", "full"],
  r: ["rejected", "rejected", "rejected"],
  o: ["out-of-service", "out of service", "out of service"],
};

const significant = new Intl.NumberFormat("en", {
  maximumSignificantDigits: 4,
  useGrouping: false,
}).format;
/** Returns a weight as text; a number that is not finite is text already. */
const weightText = (weight) => (typeof weight === "number" ? significant(weight) : weight);

/** Returns the numbers of an amount and its limit in the same unit, rounded down. */
function leftOf(name, left, limit) {
  const free = Math.max(left, 0);
  const one = (amount) => Math.floor((amount * 10) / 1024) / 10;
  if (name === "VCPU") return `${Math.floor(free)} of ${limit} vCPUs`;
  if (name === "DISK_GB") return `${Math.floor(free)} of ${limit} GiB of disk`;
  if (name !== "MEMORY_MB") return `${free} of ${limit} ${name}`;
  if (limit < 1024) return `${Math.floor(free)} of ${limit} MiB of RAM`;
  if (free && free < 1024) return `${Math.floor(free)} MiB of ${one(limit)} GiB of RAM`;
  return `${one(free)} of ${one(limit)} GiB of RAM`;
}

class Hosts {
  constructor(main) {
    this.main = main;
    const data = JSON.parse(main.querySelector("#data").textContent);
    this.data = data;
    this.names = data.hosts;
    this.fitting = data.weight.length; // the hosts that fit come first
    this.groupsOf = data.groups.of.map((number) => data.groups.all[number]);
    this.filters = data.filters;
    // The reasons of all rejections by number, from 1.
    this.reasons = new Map(
      data.texts.map(([filter, text, count, ...typos], index) => [
        index + 1,
        { number: index + 1, filter: data.filters[filter], text, count, typos },
      ]),
    );
    this.named = new Map(); // the names of groups
  }

  get count() {
    return this.names.length;
  }

  conditionOf(host) {
    return CONDITIONS[this.data.conditions[host]];
  }

  verdictOf(host) {
    const [name] = this.conditionOf(host);
    return ["chosen", "fits"].includes(name) ? name : "rejected";
  }

  isIn(host, key) {
    if (key.startsWith("c")) return this.data.cause[host - this.fitting] === key;
    return this.groupsOf[host].some((number) => this.data.keys[number] === key);
  }

  aggregatesOf(host) {
    const keys = this.groupsOf[host].map((number) => this.data.keys[number]);
    return keys.filter((key) => key.startsWith("a")).map((key) => this.groupName(key));
  }

  groupName(key) {
    const { named } = this;
    if (!named.has(key)) {
      named.set(key, this.main.querySelector(`#${key} [data-narrow]`).textContent);
    }
    return named.get(key);
  }

  /** Returns each filter that objects to the host, with whether it decided and its reasons. */
  objectionsTo(host) {
    const [decisive, ...numbers] = this.data.reasons.all[this.data.reasons.of[host]];
    const found = new Map();
    for (const number of numbers) {
      const { filter } = this.reasons.get(number);
      if (!found.has(filter)) {
        found.set(filter, { decisive: this.filters[decisive] === filter, numbers: [] });
      }
      found.get(filter).numbers.push(number);
    }
    return found;
  }

  /** Returns a sort key: the decisive rejection first, then other rejections, then passes. */
  gravityOf(host, filter) {
    const found = this.objectionsTo(host).get(filter);
    return found ? (found.decisive ? 0 : 1e9) + found.numbers[0] : Infinity;
  }

  /** The searchable text of each host, built on the first search. */
  get texts() {
    if (!this.searched) {
      const said = this.data.reasons.all.map(([, ...numbers]) =>
        numbers.map((number) => {
          const { filter, text } = this.reasons.get(number);
          return `${filter} ${text}`;
        }).join("\n"),
      );
      const names = this.data.keys.map((key) => (key.startsWith("a") ? this.groupName(key) : ""));
      const groups = this.data.groups.all.map((set) => set.map((each) => names[each]).join("\n"));
      this.searched = this.names.map((name, host) =>
        [
          name,
          this.verdictOf(host),
          this.conditionOf(host)[1],
          groups[this.data.groups.of[host]],
          said[this.data.reasons.of[host]],
        ].join("\n").toLowerCase(),
      );
    }
    return this.searched;
  }

  contributionsTo(host) {
    return (this.data.weights[host] ?? []).map(([weigher, raw, normalised, times = 1]) => {
      const text = `${this.data.weighers[weigher]}: ${raw}, normalised ${weightText(normalised)}`;
      if (times === 1) return text;
      return `${text}, times ${weightText(times)} is ${weightText(normalised * times)}`;
    });
  }

  amountsOf(host) {
    const { amounts, limits, free } = this.data;
    const limit = limits.all[limits.of[host]];
    return amounts.all[amounts.of[host]].map((name, number) =>
      leftOf(name, free[host][number], limit[number]),
    );
  }

  traitsOf(host) {
    return this.data.traits.all[this.data.traits.of[host]];
  }

  get meanings() {
    return CONDITIONS;
  }

  detailsOf(host) {
    return detailsOf(this, host);
  }

  /** Resolves to the servers of the host, each with its flavor. */
  async serversOf(host) {
    this.unpacked ??= unpacked(this.data.servers);
    const { flavors, servers } = await this.unpacked;
    const found = [];
    for (let at = 0; at < servers[host].length; at += 2) {
      found.push([servers[host][at], flavors[servers[host][at + 1]]]);
    }
    return found;
  }
}

/** Resolves to the value in compressed JSON. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
