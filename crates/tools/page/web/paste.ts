// The tab Paste: texts and files, and what `earmark read` says of them.

import { el } from "./dom";
import { Engine, Stopped } from "./engine";

/** Columns of a line of the answer that fit. */
const columns = (place: HTMLElement) => Math.max(20, Math.floor(place.clientWidth / 8.5));

export function paste(panel: HTMLElement): void {
  const engine = new Engine();
  const text = el("textarea", { id: "pasted", rows: "12", spellcheck: "false" });
  const answer = el("pre", { id: "said", "aria-live": "polite" });
  const run = async () => {
    const files = [{ before: { ask: "file", name: "-" }, file: new Blob([text.value]) }];
    try {
      const said = await engine.ask<{ text: string }>(
        { ask: "read", columns: columns(answer) }, files);
      answer.textContent = said.text;
    } catch (error) {
      if (!(error instanceof Stopped)) answer.textContent = `${(error as Error).message}`;
    }
  };
  text.addEventListener("input", run);
  panel.append(el("label", { for: "pasted" }, "Paste output or logs"), text, answer);
}
