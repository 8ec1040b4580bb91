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

export type Input = HTMLInputElement | HTMLSelectElement;

/** A field with its label above and what it takes below. */
export function field(label: string, input: Input, hint = ""): HTMLElement {
  const parts: Node[] = [el("label", { for: input.id }, label), input];
  if (hint) {
    input.setAttribute("aria-describedby", `${input.id}-hint`);
    // What stands `like this` is a word to type.
    const words = hint.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
    parts.push(el("span", { class: "hint", id: `${input.id}-hint` }, ...words));
  }
  return el("div", { class: "field" }, ...parts);
}

/** Puts markup of the engine, which has escaped every text in it, in place of what was there. */
export function put(place: HTMLElement, markup: string): void {
  place.innerHTML = markup;
}

export function button(label: string, onclick: () => void): HTMLButtonElement {
  return el("button", { type: "button", onclick }, label);
}

/** A button that lets a user choose files. */
export function chooser(label: string, isMany: boolean, take: (files: File[]) => void): Node {
  const input = el("input", { type: "file", multiple: isMany, class: "spoken", tabindex: "-1" });
  input.setAttribute("aria-hidden", "true");
  input.addEventListener("change", () => {
    take([...(input.files ?? [])]);
    // The same file may be chosen again.
    input.value = "";
  });
  return el("span", {}, button(label, () => input.click()), input);
}
