// What goes out of the page: commands to copy, and JSON to save.

import { button, el } from "./dom";

export interface CommandLine {
  element: HTMLElement;
  /** Shows a command; none, and nothing is to be seen. */
  show(command: string): void;
}

/** A command with a button that copies it. */
export function commandLine(label: string): CommandLine {
  const text = el("pre", { class: "command" });
  const copied = el("span", { role: "status", class: "copied" });
  const copy = button("Copy", async () => {
    copied.textContent = "";
    copied.textContent = await copyTextOf(text) ? "Copied." : "Selected: press Ctrl+C.";
  });
  copy.setAttribute("aria-label", `Copy: ${label}`);
  const element = el("div", { class: "typed", hidden: true },
    el("p", { class: "hint" }, label), el("div", {}, text, copy), copied);
  return {
    element,
    show: (command) => {
      element.hidden = command === "";
      text.textContent = command;
      copied.textContent = "";
    },
  };
}

/** Whether a text is in the clipboard now; if not, it is selected for the user to copy. */
async function copyTextOf(element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(element.textContent ?? "");
    return true;
  } catch {
    // Pages of a host without TLS have no clipboard but this.
    getSelection()?.selectAllChildren(element);
    return document.execCommand("copy");
  }
}

/** A button that saves JSON as a file, once there is some. */
export function saver(): { element: HTMLElement; offer(name: string, json: string): void } {
  let file = { name: "", json: "" };
  const element = button("Save as JSON", () => {
    const url = URL.createObjectURL(new Blob([`${file.json}\n`]));
    el("a", { href: url, download: `${file.name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  });
  element.hidden = true;
  return {
    element,
    /** None, and the button is hidden. */
    offer: (name, json) => {
      file = { name, json };
      element.hidden = json === "";
    },
  };
}
