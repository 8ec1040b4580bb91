// The tab Paste: texts and files, and what `earmark read` says of them.

import { commandLine, saver } from "./command";
import { button, chooser, el, field, put } from "./dom";
import { Engine, Stopped } from "./engine";
import { pack, unpack } from "./packed";
import { fragment, Panel, remember, Values } from "./state";

/** What the engine answers. */
interface Answer {
  markup: string;
  /** What the command prints with --json. */
  json: string;
  /** A line of a shell that prints what is missing. */
  missing: string;
  /** No text names the driver of a device. */
  lacks_driver: boolean;
  /** Names of files that are captures. */
  captures: string[];
}

/** How long nothing is typed before it is read, in milliseconds. */
const PAUSE = 250;

/** The panel; `onCapture` takes a capture that was among the files. */
export function paste(place: HTMLElement, onCapture: (file: File) => void): Panel {
  const engine = new Engine();
  let files: File[] = [];
  let timer = 0;
  let isBusy = false;

  const text = el("textarea", {
    id: "pasted", rows: "12", spellcheck: "false", autocomplete: "off", wrap: "off",
    "aria-describedby": "pasted-hint",
  });
  const input = (name: string) => el("input", { id: `paste-${name}`, autocomplete: "off" });
  const fields = { driver: input("driver"), device: input("device"), seconds: input("seconds") };
  fields.seconds.inputMode = "decimal";
  const status = el("p", { role: "status", class: "status" });
  const answer = el("section", { class: "answer", "aria-label": "What it says" });
  const chosen = el("span", { class: "chosen" });
  const save = saver();
  const missing = commandLine("This prints what is missing; paste it, too:");

  const beside = el("details", {},
    el("summary", {}, "What you know beside"),
    el("div", { class: "fields" },
      field("Driver", fields.driver, "where no text names it, as ethtool -i prints it"),
      field("Device", fields.device, "only this one; the name of what no text names"),
      field("Seconds", fields.seconds, "between the first and the last reading of counters")));

  const values = (): Values => {
    const named = Object.entries(fields).map(([name, field]) => [name, field.value.trim()]);
    return Object.fromEntries(named) as Values;
  };

  const read = async () => {
    if (isBusy) engine.stop();
    const sent = text.value.trim() === "" ? files : [...files, new File([text.value], "-")];
    if (sent.length === 0) {
      fail("");
      return;
    }
    isBusy = true;
    status.textContent = "Reading...";
    const { driver, device, seconds } = values();
    const ask = {
      ask: "read",
      files: sent.map((file) => file.name),
      driver: driver || null,
      device: device || null,
      seconds: seconds ? Number(seconds) : null,
    };
    try {
      const said = await engine.ask<Answer>(ask, sent);
      isBusy = false;
      put(answer, said.markup);
      save.offer(files[0]?.name ?? "pasted", said.json);
      missing.show(said.missing);
      if (said.lacks_driver) beside.open = true;
      status.textContent = "Read; the answer is below.";
      const capture = files.find((file) => said.captures.includes(file.name));
      if (capture) {
        files = files.filter((file) => file !== capture);
        list();
        onCapture(capture);
      }
    } catch (error) {
      if (error instanceof Stopped) return;
      isBusy = false;
      fail((error as Error).message);
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(read, PAUSE);
  };
  const list = () => {
    chosen.textContent = files.map((file) => file.name).join(", ");
  };
  const take = (more: File[]) => {
    files = more;
    list();
    read();
  };
  const clear = () => {
    text.value = "";
    take([]);
    text.focus();
  };
  const fail = (why: string) => {
    put(answer, "");
    save.offer("", "");
    missing.show("");
    status.textContent = why;
  };
  const example = () => {
    engine.ask<string>({ ask: "example" }).then((plain) => {
      text.value = plain;
      read();
    }, (error) => fail((error as Error).message));
  };
  const link = async () => {
    const hash = fragment("paste", { ...values(), text: await pack(text.value) });
    history.replaceState(null, "", hash);
    try {
      await navigator.clipboard.writeText(location.href);
      status.textContent = "The link is copied: the text is in it, and goes to whoever gets it.";
    } catch {
      status.textContent = "The address of this page is the link now: the text is in it.";
    }
  };

  text.addEventListener("input", soon);
  for (const field of Object.values(fields)) {
    field.addEventListener("input", () => {
      remember("paste", values());
      soon();
    });
  }
  place.append(
    el("label", { for: "pasted", class: "heading" }, "Paste output, logs or settings"),
    text,
    el("p", { class: "hint", id: "pasted-hint" },
      "ethtool -c, -i, -k, -S, ping, sockperf, /proc/interrupts, chrony, TuneD, systemd and more, " +
      "one after the other; or drop files and reports (sosreport, supportconfig) anywhere."),
    el("div", { class: "buttons" },
      chooser("Choose files", true, take), button("Example", example),
      button("Link with this text", link), button("Clear", clear), chosen),
    beside,
    status,
    answer,
    missing.element,
    el("div", { class: "buttons" }, save.element),
  );
  return {
    values,
    take,
    restore: (from) => {
      for (const [name, field] of Object.entries(fields)) field.value = from.get(name) ?? "";
      const packed = from.get("text");
      if (packed === null) {
        read();
        return;
      }
      unpack(packed).then((plain) => {
        text.value = plain;
        read();
      }, () => {
        status.textContent = "The text in the address is damaged.";
      });
    },
  };
}
