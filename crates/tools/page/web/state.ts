// What the page shows, in the fragment of its address: `#drop?by=flow`. A link has it all.

/** The names of the tabs. */
export const TABS = ["see", "paste", "drop"] as const;
export type Tab = (typeof TABS)[number];

/** Values of a tab, by the names of its fields. */
export type Values = Record<string, string>;

/** What is in a tab. */
export interface Panel {
  /** Shows what an address says; what it does not name is as usual. */
  restore(values: URLSearchParams): void;
  /** What a link has to say to show the same. */
  values(): Values;
  /** Takes files that were dropped. */
  take?(files: File[]): void;
}

/** The tab and its values, as the address has them. */
export function state(): { tab: Tab; values: URLSearchParams } {
  const [name, ...values] = location.hash.slice(1).split("?");
  const tab = TABS.find((tab) => tab === name) ?? "see";
  return { tab, values: new URLSearchParams(values.join("?")) };
}

/** The fragment of a tab with values; those that are empty are left out. */
export function fragment(tab: Tab, values: Values): string {
  const kept = Object.entries(values).filter(([, value]) => value !== "");
  const text = new URLSearchParams(kept).toString();
  return text === "" ? `#${tab}` : `#${tab}?${text}`;
}

/** Writes the address, without a step of history. */
export function remember(tab: Tab, values: Values): void {
  history.replaceState(null, "", fragment(tab, values));
}
