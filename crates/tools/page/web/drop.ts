// The tab Drop: a capture, and what `earmark predict` says of it.

import { commandLine, saver } from "./command";
import { button, chooser, el, field, Input, put } from "./dom";
import { Engine, Stopped } from "./engine";
import { Panel, remember, Values } from "./state";

/** An option of the command. */
interface Option {
  name: string;
  hint: string;
  /** The words that it takes, if it takes no others. */
  choices: string[];
  /** What it is if nothing is said. */
  usual: string;
}

/** What the engine answers. */
interface Answer {
  /** The command that says the same. */
  command: string;
  markup: string;
  /** What the command prints with --json. */
  json: string;
}

/** So many options are always in sight. */
const FIRST = 4;

/** What stands for no choice. */
const NONE = "none";

function control({ name, choices, usual }: Option): Input {
  const id = `drop-${name}`;
  if (choices.length === 0) {
    return el("input", { id, autocomplete: "off", spellcheck: "false", placeholder: usual });
  }
  return el("select", { id }, ...choices.map((value) => el("option", { value }, value || NONE)));
}

export function drop(place: HTMLElement): Panel {
  const engine = new Engine();
  let capture: File | undefined;
  let all: { option: Option; input: Input }[] = [];
  /** What the address said before there were options. */
  let asked = new URLSearchParams();
  /** Of two runs the later counts. */
  let run = 0;

  const status = el("p", { role: "status", class: "status" });
  const bar = el("progress", { max: "1", "aria-label": "Read of the capture" });
  const work = el("div", { class: "work", hidden: true }, bar, button("Cancel", () => engine.stop()));
  const command = commandLine("The command that says the same:");
  const answer = el("section", { class: "answer", "aria-label": "What it says" });
  const save = saver();
  const first = el("div", { class: "fields" });
  const more = el("div", { class: "fields" });

  const values = (): Values => Object.fromEntries(all.map(({ option, input }) => {
    const value = input.value.trim();
    return [option.name, value === option.usual ? "" : value];
  }));

  const predict = async () => {
    if (!capture || all.length === 0) return;
    const { name, size } = capture;
    const mine = ++run;
    engine.stop();
    work.hidden = false;
    bar.value = 0;
    status.textContent = `Reading ${name}...`;
    const started = performance.now();
    try {
      const said = await engine.ask<Answer>({ ask: "predict", name, options: values() }, [capture],
        (done, of) => { bar.value = of ? done / of : 1; });
      put(answer, said.markup);
      command.show(said.command);
      save.offer(name, said.json);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      status.textContent = `${(size / 1e6).toFixed(1)} MB in ${seconds} s.`;
    } catch (error) {
      if (mine !== run) return;
      put(answer, "");
      command.show("");
      save.offer("", "");
      status.textContent = error instanceof Stopped ? "Cancelled." : (error as Error).message;
    }
    // Whoever stands on the button that goes away stands on the first one.
    if (work.contains(document.activeElement)) place.querySelector("button")!.focus();
    work.hidden = true;
  };
  const take = ([first]: File[]) => {
    if (!first) return;
    capture = first;
    predict();
  };
  const apply = () => {
    for (const { option, input } of all) {
      const usual = option.choices.length === 0 ? "" : option.usual;
      input.value = asked.get(option.name) ?? usual;
    }
    predict();
  };
  engine.ask<Option[]>({ ask: "predict-form" }).then((options) => {
    all = options.map((option) => ({ option, input: control(option) }));
    const fields = all.map(({ option, input }) => {
      input.addEventListener("change", () => {
        remember("drop", values());
        predict();
      });
      return field(option.name, input, option.hint);
    });
    first.append(...fields.slice(0, FIRST));
    more.append(...fields.slice(FIRST));
    apply();
  }, (error) => {
    status.textContent = (error as Error).message;
  });
  place.append(
    el("p", { class: "heading" }, "Drop a capture here, or choose one"),
    el("p", { class: "hint" },
      "pcap or pcapng, also compressed, of any length: tcpdump -i eth0 -s 96 -w FILE. ",
      "What each setting of the NIC would do to its packets, and which to mark."),
    el("div", { class: "buttons" }, chooser("Choose a capture", false, take)),
    first,
    el("details", {}, el("summary", {}, "More options"), more),
    work, status, command.element,
    el("div", { class: "buttons" }, save.element),
    answer,
  );
  return {
    values,
    take,
    restore: (from) => {
      asked = from;
      if (all.length > 0) apply();
    },
  };
}
