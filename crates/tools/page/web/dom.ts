// Elements, in one expression.

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** An element with attributes, listeners (`onclick`) and children; texts are escaped. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") element.toggleAttribute(name, value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A field with its label above, and what it means below. */
export function field(label: string, input: HTMLElement, hint = ""): HTMLElement {
  const parts: Node[] = [el("span", { class: "label" }, label), input];
  if (hint) {
    input.setAttribute("aria-describedby", `${input.id}-hint`);
    parts.push(el("span", { class: "hint", id: `${input.id}-hint` }, hint));
  }
  return el("label", { class: "field", for: input.id }, ...parts);
}

/** Puts markup of the engine, which has escaped every text in it, in place of what was there. */
export function show(place: HTMLElement, markup: string): void {
  place.innerHTML = markup;
}
