// Elements, and lists that are cut.

/** Returns a new element with this text; a list of attributes may follow. */
function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Returns an element of a picture. */
function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
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

const written = (count) => count.toLocaleString("en");
const counted = (count, what) => (count === 1 ? `1 ${what}` : `${written(count)} ${what}s`);

/** Returns a button that shows the rest of a list and disappears. */
function rest(count, show) {
  const button = made("button", `Show all ${written(count)}`, { type: "button", class: "rest" });
  button.addEventListener("click", () => {
    button.remove();
    show();
  });
  return button;
}
