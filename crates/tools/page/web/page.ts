// The page: its tabs, the state in its address, and files that are dropped anywhere on it.

import { drop } from "./drop";
import { paste } from "./paste";
import { see } from "./see";
import { Panel, remember, state, Tab, TABS } from "./state";

const made = new Map<Tab, Panel>();

const make: Record<Tab, (place: HTMLElement) => Panel> = {
  see,
  paste: (place) => paste(place, (capture) => open("drop").take?.([capture])),
  drop,
};

const element = (id: string) => document.getElementById(id)!;

/** Shows a tab, which is made when it is shown first. */
function show(chosen: Tab): Panel {
  for (const tab of TABS) {
    const isChosen = tab === chosen;
    element(`tab-${tab}`).setAttribute("aria-selected", `${isChosen}`);
    element(`tab-${tab}`).tabIndex = isChosen ? 0 : -1;
    element(tab).hidden = !isChosen;
  }
  const known = made.get(chosen);
  if (known) return known;
  const panel = make[chosen](element(chosen));
  made.set(chosen, panel);
  panel.restore(new URLSearchParams());
  return panel;
}

/** Shows a tab as it was left. */
function open(tab: Tab): Panel {
  const panel = show(tab);
  remember(tab, panel.values());
  return panel;
}

/** Shows what the address says. */
function restore(): void {
  const { tab, values } = state();
  show(tab).restore(values);
}

/** The keys of tabs, as the ARIA Authoring Practices have them. */
function keys(event: KeyboardEvent): void {
  const at = TABS.indexOf((event.target as HTMLElement).id.slice("tab-".length) as Tab);
  const last = TABS.length - 1;
  const steps: Record<string, number> = {
    ArrowRight: at === last ? 0 : at + 1,
    ArrowLeft: at === 0 ? last : at - 1,
    Home: 0,
    End: last,
  };
  const tab = TABS[steps[event.key] ?? -1];
  if (!tab) return;
  event.preventDefault();
  open(tab);
  element(`tab-${tab}`).focus();
}

for (const tab of TABS) {
  element(`tab-${tab}`).addEventListener("click", () => open(tab));
  element(`tab-${tab}`).addEventListener("keydown", keys);
}
addEventListener("hashchange", restore);
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  const files = [...(event.dataTransfer?.files ?? [])];
  event.preventDefault();
  if (files.length === 0) return;
  // Where a capture is among them, Paste finds it and hands it on.
  const tab = state().tab === "drop" ? "drop" : "paste";
  open(tab).take?.(files);
});
restore();
