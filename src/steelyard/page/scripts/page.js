// Setup, and loading another decision on the live page.

const SOON = 150; // milliseconds to wait for another change of the form before loading

let main, form, announcement;
let matrix = null;
let choices = [];
let asking = new AbortController();
let asked = location.search; // the query of the decision that is shown or being loaded
let soon; // the timer until the next load

function begin() {
  // Without data, keep the old table: the next one takes over its search.
  if (!main.querySelector("#data")) return;
  const hosts = new Hosts(main);
  const maps = Array.from(
    main.querySelectorAll("[data-map]"),
    (container) => new HostMap(container, hosts, hosts.data[container.dataset.map]),
  );
  prepareLists(main);
  const before = matrix;
  matrix = new Matrix(main, hosts, maps);
  if (before) matrix.follow(before);
  else matrix.show();
}

function announce(text, failed) {
  announcement.textContent = text;
  announcement.className = failed ? "failure" : "unseen";
}

/** Returns the names that a field of the form offers, each with a remark. */
function offered(page, field) {
  const options = page.querySelectorAll(`#${field.id}-names option`);
  return new Map(Array.from(options, (option) => [option.value, option.dataset.remark ?? ""]));
}

function put(page) {
  for (const plain of page.querySelectorAll("noscript")) plain.remove();
  document.title = page.title;
  document.querySelector(".skip").textContent = page.querySelector(".skip").textContent;
  document.querySelector(".source").replaceChildren(...page.querySelector(".source").childNodes);
  main.replaceChildren(...page.querySelector("main").childNodes);
  begin();
  for (const choice of choices) {
    const fresh = page.getElementById(choice.field.id);
    if (!fresh) continue;
    choice.options = offered(page, fresh);
    if (document.activeElement !== choice.field || !choice.isOpen) choice.value = fresh.value;
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

function changed() {
  // Moving through the flavors with the keyboard loads only the last one.
  const address = `?${new URLSearchParams(new FormData(form))}`;
  if (soon) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  asked = location.search;
  clearTimeout(soon);
  soon = setTimeout(settled, SOON);
}

addEventListener("beforeprint", () => matrix?.printing(true));
addEventListener("afterprint", () => matrix?.printing(false));
addEventListener("resize", () => matrix?.fold());

addEventListener("DOMContentLoaded", () => {
  main = document.querySelector("main");
  form = document.querySelector("#ask");
  announcement = document.querySelector("#announcement");
  begin();
  if (main.querySelector("#room-data")) new RoomTable(main);
  if (main.querySelector("#changes-data")) showChanges(main);
  if (main.querySelector("#try")) prepareChanges(main.querySelector("#try"));
  if (!form) return;
  choices = Array.from(
    form.querySelectorAll("input"),
    (field) => new Choice(field, offered(document, field)),
  );
  form.addEventListener("chosen", changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed();
  });
  addEventListener("popstate", () => {
    if (location.search === asked) return; // only the fragment has changed
    asked = location.search;
    settled();
  });
});
