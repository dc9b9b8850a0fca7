// Builds DOM nodes. Text is always text: nothing in this page parses HTML.

type Child = Node | string;

/** Returns the element with an id, which index.html has. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`index.html has no #${id}`);
  }
  return found as E;
}

/** Creates an element with attributes and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Creates a button that calls a function. */
export function button(label: string, onClick: () => void, className = ""): HTMLButtonElement {
  const made = element("button", { type: "button" }, label);
  made.className = className;
  made.addEventListener("click", onClick);
  return made;
}
