// The tab Drop: a capture, and what `earmark predict` says of it.

import { chooser, el, field, Input, put } from "./dom";
import { Engine, Stopped } from "./engine";
import { Panel, remember, Values } from "./state";

/** What the engine answers. */
interface Answer {
  /** The command that says the same. */
  command: string;
  markup: string;
  /** What the command prints with --json. */
  json: string;
}

/** Every field is an option of the command, by its name; empty, it is as usual. */
const OPTIONS: [name: string, label: string, hint: string, choices?: string[]][] = [
  ["compare", "Settings", "as delay:20, throttle:50, marked:75; without any, six usual ones"],
  ["grid", "Search a grid", "of rx-usecs and rx-frames", ["delay", "throttle", "periodic", "none"]],
  ["by", "List holds by", "", ["port", "flow", "dscp", "rule"]],
  ["mark", "Marks", "rules, as udp-port=123; without any, rules are proposed"],
  ["lane", "Lane", "rules for a queue of its own under the setting lane"],
  ["host", "Host", "the address whose arrivals count"],
  ["interface", "Interface", "of a capture with several"],
  ["link-rate", "Mbit/s of the wire", "undoes clumps as far as it proves them wrong"],
  ["queues", "Receive queues", "1 to 64"],
  ["ring", "Ring", "packets that a receive ring holds"],
];

/** The fields that are always in sight. */
const FIRST = 3;

function control(name: string, choices: string[] | undefined): Input {
  const id = `drop-${name}`;
  if (!choices) return el("input", { id, autocomplete: "off", spellcheck: "false" });
  const option = (value: string) => el("option", { value }, value);
  return el("select", { id }, ...choices.map(option));
}

export function drop(place: HTMLElement): Panel {
  const engine = new Engine();
  let capture: File | undefined;
  let json = "";
  /** Of two runs the later counts. */
  let run = 0;

  const all = OPTIONS.map(([name, label, hint, choices]) => {
    const input = control(name, choices);
    return { name, input, usual: choices?.[0] ?? "", field: field(label, input, hint) };
  });
  const status = el("p", { role: "status", class: "status" });
  const bar = el("progress", { max: "1", "aria-label": "Read of the capture" });
  const cancel = el("button", { type: "button", onclick: () => engine.stop() }, "Cancel");
  const work = el("div", { class: "work", hidden: true }, bar, cancel);
  const command = el("pre", { class: "command", hidden: true });
  const answer = el("section", { class: "answer", "aria-label": "What it says" });
  const save = el("button", { type: "button", hidden: true, onclick: () => download() },
    "Save as JSON");

  const asked = () => all.map(({ name, input, usual }) => [name, input.value.trim(), usual]);
  const values = (): Values => Object.fromEntries(
    asked().map(([name, value, usual]) => [name, value === usual ? "" : value]));

  const predict = async () => {
    if (!capture) return;
    const { name, size } = capture;
    const mine = ++run;
    engine.stop();
    work.hidden = false;
    bar.value = 0;
    status.textContent = `Reading ${name}...`;
    const started = performance.now();
    const options = Object.fromEntries(asked().map(([option, value]) => [option, value]));
    const before = { ask: "capture", name, ...options };
    try {
      const said = await engine.ask<Answer>({ ask: "predict" }, [{ before, file: capture }],
        (done, of) => { bar.value = of ? done / of : 1; });
      put(answer, said.markup);
      command.textContent = said.command;
      json = said.json;
      [command, save].forEach((it) => { it.hidden = false; });
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      status.textContent = `${(size / 1e6).toFixed(1)} MB in ${seconds} s. On a machine:`;
    } catch (error) {
      if (mine !== run) return;
      put(answer, "");
      [command, save].forEach((it) => { it.hidden = true; });
      status.textContent = error instanceof Stopped ? "Cancelled." : (error as Error).message;
    }
    work.hidden = true;
  };
  const download = () => {
    const url = URL.createObjectURL(new Blob([`${json}\n`]));
    el("a", { href: url, download: `${capture?.name ?? "capture"}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  const take = ([first]: File[]) => {
    if (!first) return;
    capture = first;
    predict();
  };
  for (const { input } of all) {
    input.addEventListener("change", () => {
      remember("drop", values());
      predict();
    });
  }
  const fields = all.map((it) => it.field);
  place.append(
    el("p", { class: "heading" }, "Drop a capture here, or choose one"),
    el("p", { class: "hint" },
      "pcap or pcapng, also compressed by gzip, of any length: tcpdump -i eth0 -s 96 -w FILE. ",
      "What each setting of the NIC would do to its packets, and which to mark."),
    el("div", { class: "buttons" }, chooser("Choose a capture", false, take)),
    el("div", { class: "fields" }, ...fields.slice(0, FIRST)),
    el("details", {}, el("summary", {}, "More options"),
      el("div", { class: "fields" }, ...fields.slice(FIRST))),
    work, status, command,
    el("div", { class: "buttons" }, save),
    answer,
  );
  return {
    values,
    take,
    restore: (from) => {
      for (const { name, input, usual } of all) input.value = from.get(name) ?? usual;
      predict();
    },
  };
}
