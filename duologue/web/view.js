/** The elements of the page, and how a situation looks on them. */

import { status } from "./status.js";

/**
 * @template {Element} T
 * @param {string} id
 * @param {new (...args: any[]) => T} type
 * @returns {T}
 */
function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`index.html has no ${type.name} with the id ${id}`);
  return found;
}

export const ui = {
  visualiser: byId("visualiser", HTMLCanvasElement),
  status: byId("status", HTMLElement),
  trouble: byId("trouble", HTMLElement),
  call: byId("call", HTMLButtonElement),
  callLabel: byId("call-label", HTMLElement),
  mute: byId("mute", HTMLButtonElement),
  hear: byId("hear", HTMLButtonElement),
  picker: byId("microphone", HTMLSelectElement),
  captions: byId("captions", HTMLElement),
  composer: byId("composer", HTMLFormElement),
  typed: byId("typed", HTMLInputElement),
  timeline: byId("timeline", HTMLCanvasElement),
  latency: byId("latency", HTMLTableElement),
  model: byId("model", HTMLElement),
  clock: byId("clock", HTMLElement),
  voice: byId("voice", HTMLAudioElement),
};

/**
 * Writes a line and a hint, touching nothing that stays the same: these are live regions.
 * @param {HTMLElement} region
 * @param {{label: string, hint: string} | null} lines
 */
function write(region, lines) {
  const texts = lines === null ? [] : [lines.label, lines.hint];
  const shown = [...region.children].map((child) => child.textContent);
  if (texts.length === shown.length && texts.every((text, index) => text === shown[index])) return;
  region.replaceChildren(...texts.map((text, index) => {
    const line = document.createElement("p");
    line.className = index === 0 ? "label" : "hint";
    line.textContent = text;
    return line;
  }));
}

/** @param {import("./status.js").Situation} situation */
export function show(situation) {
  const { state, label, hint, title, action, actionLabel } = status(situation);
  const { phase, muted, trouble } = situation;
  const root = document.documentElement;
  const live = phase === "live";
  // In a call the agent's own voice says what it does; a screen reader that spoke over it would be in the way.
  const quiet = live && root.dataset["phase"] === "live" && situation.note === "" && situation.down.size === 0;
  ui.status.setAttribute("aria-live", quiet ? "off" : "polite");
  root.dataset["phase"] = phase;
  root.dataset["state"] = state;
  if (live) root.dataset["conversation"] = "";
  if (trouble === null) delete root.dataset["fault"];
  else root.dataset["fault"] = trouble.fault;
  document.title = title;

  write(ui.status, trouble === null ? { label, hint } : null);
  write(ui.trouble, trouble === null ? null : { label, hint });

  ui.call.dataset["action"] = action;
  ui.callLabel.textContent = actionLabel;
  ui.mute.setAttribute("aria-pressed", String(muted));
  if (!live && [ui.mute, ui.hear, ui.typed].some((gone) => gone === document.activeElement)) ui.call.focus();
  ui.mute.hidden = !live;
}
