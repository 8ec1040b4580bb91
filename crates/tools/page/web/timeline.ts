// The timeline of the tab See: a window on the run that was played last, at rest or moving.

import { button, el, put } from "./dom";
import { Engine } from "./engine";
import { Values } from "./state";

/** What the engine shows of a moment. */
interface Seen {
  at_us: number;
  end_us: number;
  picture: string;
  says: string[];
  setting: string;
  algorithm: [line: string, decides: boolean][];
}

/** Microseconds that are shown at first, at least and at most. */
const SPANS = { usual: 400, least: 5, most: 40_000 };

/** Who wants little motion sees one thing after the other, for so many milliseconds each. */
const CALM = 1_000;
const wantsCalm = matchMedia("(prefers-reduced-motion: reduce)");

export interface TimelinePanel {
  element: HTMLElement;
  /** Shows the moment again: another run may have been played. */
  look(): Promise<void>;
  restore(values: URLSearchParams): void;
  values(): Values;
}

export function timeline(engine: Engine, changed: () => void): TimelinePanel {
  let at = 0;
  let end = 0;
  let span: number = SPANS.usual;
  let isMoving = false;
  let isLooking = false;
  let timer = 0;
  /** Pixels of the picture when it was seen last; asked of the browser, they cost a layout. */
  let width = 0;
  /** The step of the look that follows. */
  let next: number | undefined;

  const picture = el("figure", { class: "time" });
  const says = el("ul", { class: "says", "aria-live": "polite" });
  const algorithm = el("pre", { class: "algorithm", role: "region", tabindex: "0", "aria-label": "The algorithm" });
  const where = el("input", {
    type: "range", min: "0", step: "any", "aria-label": "Moment of the run",
    oninput: () => {
      at = where.valueAsNumber;
      quietly();
    },
  });

  const look = async (step = 0) => {
    const asked = at;
    const pixels = Math.max(280, width - 2);
    const ask = { ask: "see-look", at_us: at, span_us: span, step, width: pixels };
    const seen = await engine.ask<Seen>(ask);
    // Somebody may have gone on meanwhile.
    if (at === asked) at = seen.at_us;
    end = seen.end_us;
    put(picture, seen.picture);
    says.replaceChildren(...seen.says.map((text) => el("li", {}, text)));
    algorithm.replaceChildren(`${seen.setting}\n\n`, ...seen.algorithm.flatMap(([line, decides]) =>
      [decides ? el("mark", {}, line) : line, "\n"]));
    where.max = `${end}`;
    where.value = `${at}`;
    where.setAttribute("aria-valuetext", `${at.toFixed(1)} us`);
  };

  /** Looks; of changes meanwhile, the last one counts. */
  const quietly = async (step = 0) => {
    next = step;
    if (isLooking) return;
    isLooking = true;
    while (next !== undefined) {
      const by = next;
      next = undefined;
      // Nothing has been played yet, or the engine was stopped.
      await look(by).catch(() => undefined);
    }
    isLooking = false;
    if (!isMoving) changed();
  };

  const move = async () => {
    if (!isMoving) return;
    const isCalm = wantsCalm.matches;
    if (!isCalm) at += span / 150;
    if (at >= end) pause();
    await quietly(isCalm ? 1 : 0);
    if (isCalm) timer = setTimeout(move, CALM);
    else requestAnimationFrame(move);
  };
  const pause = () => {
    isMoving = false;
    clearTimeout(timer);
    run.textContent = "Play";
    says.setAttribute("aria-live", "polite");
  };
  const run = el("button", {
    type: "button",
    onclick: () => {
      if (isMoving) {
        pause();
        changed();
        return;
      }
      isMoving = true;
      run.textContent = "Pause";
      says.setAttribute("aria-live", "off");
      if (at >= end) at = 0;
      move();
    },
  }, "Play");
  const zoom = (factor: number) => {
    span = Math.min(SPANS.most, Math.max(SPANS.least, span * factor));
    quietly();
  };
  const step = (by: number) => {
    pause();
    quietly(by);
  };
  new ResizeObserver(() => {
    // A tab that is hidden has no width.
    if (picture.clientWidth === width || picture.clientWidth === 0) return;
    width = picture.clientWidth;
    if (end > 0) quietly();
  }).observe(picture);

  const key = (name: string, text: string) => el("li", { class: `key ${name}` }, text);
  const element = el("section", { class: "timeline", "aria-label": "Timeline" },
    el("h2", {}, "What happens"),
    el("div", { class: "buttons" }, run,
      button("Step back", () => step(-1)), button("Step", () => step(1)),
      button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2))),
    where, picture,
    el("ul", { class: "keys", "aria-hidden": "true" },
      key("dma", "DMA"), key("hold", "hold"), key("interrupt", "interrupt"),
      key("handler", "handler"), key("poll", "poll"), key("wakeup", "wake-up"),
      key("program", "program"), key("marked", "marked")),
    el("div", { class: "beside" }, says, algorithm));

  return {
    element,
    look,
    restore: (values) => {
      pause();
      at = Number(values.get("at")) || 0;
      span = Number(values.get("span")) || SPANS.usual;
    },
    values: () => ({
      at: at === 0 ? "" : at.toFixed(3),
      span: span === SPANS.usual ? "" : `${span}`,
    }),
  };
}
