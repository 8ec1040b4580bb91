// The page: its tabs, and the state in its address.

import { paste } from "./paste";
import { state, remember, TABS, Tab } from "./state";

const panels: Record<Tab, (panel: HTMLElement) => void> = {
  see: () => undefined,
  paste,
  drop: () => undefined,
};

const made = new Set<Tab>();

/** Shows a tab, which is made when it is shown first. */
function open(chosen: Tab): void {
  for (const tab of TABS) {
    const [button, panel] = [`tab-${tab}`, tab].map((id) => document.getElementById(id)!);
    const isChosen = tab === chosen;
    button!.setAttribute("aria-selected", `${isChosen}`);
    button!.tabIndex = isChosen ? 0 : -1;
    panel!.hidden = !isChosen;
    if (isChosen && !made.has(tab)) {
      made.add(tab);
      panels[tab](panel!);
    }
  }
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
  remember(tab, {});
  open(tab);
  document.getElementById(`tab-${tab}`)!.focus();
}

for (const tab of TABS) {
  const button = document.getElementById(`tab-${tab}`)!;
  button.addEventListener("click", () => {
    remember(tab, {});
    open(tab);
  });
  button.addEventListener("keydown", keys);
}
addEventListener("hashchange", () => open(state().tab));
open(state().tab);
