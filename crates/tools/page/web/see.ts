// The tab See: the model under what the controls say. The engine plays, draws and words it all.

import { commandLine } from "./command";
import { el, put } from "./dom";
import { Engine, Stopped } from "./engine";
import { fragment, Panel, remember, Values } from "./state";
import { timeline } from "./timeline";

/** Something that can be set: a flag of the command. */
interface Control {
  name: string;
  hint: string;
  kind: "choice" | "range" | "check";
  /** The values that it takes, in order; the empty one is what the machine or experiment has. */
  stops: string[];
  value: string;
  unit: string;
}

interface Form {
  controls: Control[];
  cases: { title: string; says: string; figure: string; links: StoryLink[] }[];
}

/** A link of a story, with the figure that it shows. */
interface StoryLink {
  text: string;
  shows: string;
  values: Values;
}

/** The trade-off, and the setting that is missing in it. */
interface Picture {
  picture: string;
  next: Ghost | null;
}

/** Another setting in the picture, played or to be played, as the engine has it. */
type Ghost = object;

/** What the engine answers. */
interface Played extends Picture {
  command: string;
  all: string;
  taken: string[];
  figures: [name: string, value: string][];
}

/** A control on the page. */
interface Field {
  control: Control;
  element: HTMLElement;
  get(): string;
  set(value: string): void;
}

/** What stands for the empty value. */
const USUAL = "usual";

export function see(place: HTMLElement): Panel {
  const engine = new Engine();
  /** Plays the other settings, for which no answer waits. */
  const second = new Engine();
  let fields: Field[] = [];
  /** What the address said before there were controls. */
  let asked = new URLSearchParams();
  let isPlaying = false;
  let isAsked = false;
  let isFilling = false;
  /** The setting that is missing in the picture. */
  let next: Ghost | null = null;

  const stories = el("section", { class: "stories", "aria-label": "Stories" });
  const controls = el("div", { class: "fields controls", role: "group", "aria-label": "Settings" });
  const picture = el("figure", { class: "tradeoff" });
  const figures = el("dl", { class: "figures" });
  const status = el("p", { role: "status", class: "status" });
  /** The first figure, for who hears the page. */
  const told = el("p", { role: "status", class: "spoken" });
  const one = commandLine("The command that gives these numbers:");
  const others = commandLine("The same with all settings of the picture:");
  const time = timeline(engine, () => remember("see", values()));

  const current = (): Values =>
    Object.fromEntries(fields.map(({ control, get }) => [control.name, get()]));
  const values = (): Values => {
    const own = fields.map(({ control, get }) => [control.name, get() === control.value ? "" : get()]);
    return { ...Object.fromEntries(own), ...time.values() };
  };

  const show = (said: Played) => {
    put(picture, said.picture);
    next = said.next;
    figures.replaceChildren(...said.figures.map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    one.show(said.command);
    others.show(said.all);
    for (const { control, element } of fields) element.hidden = !said.taken.includes(control.name);
    told.textContent = said.figures[0]?.join(": ") ?? "";
    status.textContent = "";
  };

  const fail = (error: unknown) => {
    if (!(error instanceof Stopped)) status.textContent = (error as Error).message;
  };

  /** Plays what is set; of changes meanwhile, the last one counts. */
  const play = async () => {
    isAsked = true;
    if (isPlaying) return;
    isPlaying = true;
    while (isAsked) {
      isAsked = false;
      try {
        show(await engine.ask<Played>({ ask: "see", values: current() }));
        await time.look();
      } catch (error) {
        fail(error);
      }
    }
    isPlaying = false;
    fill();
  };

  /** Fills the picture with the other settings. */
  const fill = async () => {
    if (isFilling) return;
    isFilling = true;
    try {
      while (next) {
        const ghost = await second.ask<Ghost>({ ask: "see-ghost", ...next });
        const more = await engine.ask<Picture>({ ask: "see-beside", ...ghost });
        put(picture, more.picture);
        next = more.next;
      }
      if (!isPlaying) place.dataset.played = fragment("see", values());
    } catch (error) {
      fail(error);
    }
    isFilling = false;
  };

  const changed = () => {
    remember("see", values());
    play();
  };

  const apply = () => {
    for (const { control, set } of fields) set(asked.get(control.name) ?? control.value);
    time.restore(asked);
    play();
  };

  place.append(
    stories,
    el("div", { class: "model" },
      controls,
      picture,
      el("div", {}, status, told, figures, one.element, others.element, time.element)),
  );
  engine.ask<Form>({ ask: "see-form" }).then((form) => {
    fields = form.controls.map((control) => field(control, changed));
    controls.append(...fields.map((it) => it.element));
    stories.append(...form.cases.map(({ title, says, figure, links }) =>
      el("article", {}, el("h2", {}, title), el("p", {}, says),
        el("p", { class: "hint" }, `${figure}:`),
        el("dl", {}, ...links.map(({ text, shows, values }) => el("div", {},
          el("dt", {}, el("a", { href: fragment("see", values) }, text)),
          el("dd", {}, shows)))))));
    apply();
  }, (error) => {
    status.textContent = (error as Error).message;
  });

  return {
    restore: (values) => {
      asked = values;
      if (fields.length > 0) apply();
    },
    values,
  };
}

/** A control as an element that `changed` hears of. */
function field(control: Control, changed: () => void): Field {
  const { name, hint, kind, unit } = control;
  const stops = [...control.stops];
  const id = `see-${name}`;
  const label = el("label", { for: id, title: hint }, name);
  if (kind === "check") {
    const input = el("input", { id, type: "checkbox", title: hint, onchange: changed });
    return {
      control,
      element: el("div", { class: "field check" }, input, label),
      get: () => (input.checked ? "true" : ""),
      set: (value) => { input.checked = value === "true"; },
    };
  }
  if (kind === "choice") {
    const option = (value: string) => el("option", { value }, value || USUAL);
    const input = el("select", { id, title: hint, onchange: changed }, ...stops.map(option));
    return {
      control,
      element: el("div", { class: "field" }, label, input),
      get: () => input.value,
      set: (value) => {
        if (![...input.options].some((it) => it.value === value)) input.append(option(value));
        input.value = value;
      },
    };
  }
  const output = el("output", { for: id });
  const input = el("input", { id, type: "range", min: "0", step: "1", title: hint });
  const word = () => {
    const stop = stops[input.valueAsNumber] ?? "";
    output.textContent = stop === "" ? USUAL : `${stop} ${unit}`;
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    word();
    changed();
  });
  return {
    control,
    element: el("div", { class: "field" }, el("span", {}, label, output), input),
    get: () => stops[input.valueAsNumber] ?? "",
    set: (value) => {
      // A link may have a value between two stops.
      if (!stops.includes(value)) {
        const behind = stops.findIndex((stop) => Number(stop) > Number(value));
        stops.splice(behind < 0 ? stops.length : behind, 0, value);
      }
      input.max = `${stops.length - 1}`;
      input.value = `${stops.indexOf(value)}`;
      word();
    },
  };
}
