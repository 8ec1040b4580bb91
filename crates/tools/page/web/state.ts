// What the page shows, in the fragment of its address: `#drop?by=flow`. A link has it all.

/** The names of the tabs. */
export const TABS = ["see", "paste", "drop"] as const;
export type Tab = (typeof TABS)[number];

/** The tab and its values, as the address has them. */
export function state(): { tab: Tab; values: URLSearchParams } {
  const [name, values] = location.hash.slice(1).split(/\?(.*)/s);
  const tab = TABS.find((tab) => tab === name) ?? "see";
  return { tab, values: new URLSearchParams(values) };
}

/** The fragment of a tab with values; those that are empty are left out. */
export function fragment(tab: Tab, values: Record<string, string>): string {
  const kept = Object.entries(values).filter(([, value]) => value !== "");
  const text = new URLSearchParams(kept).toString();
  return text === "" ? `#${tab}` : `#${tab}?${text}`;
}

/** Writes the address, without a step of history. */
export function remember(tab: Tab, values: Record<string, string>): void {
  history.replaceState(null, "", fragment(tab, values));
}
