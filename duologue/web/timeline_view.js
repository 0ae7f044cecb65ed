/** Draws the timeline: two lanes, the caller above the agent, the present at the right edge. */

import { CALM, Surface } from "./canvas.js";
import { WINDOW_MS, describe } from "./timeline.js";

/** @typedef {import("./timeline.js").Span} Span */

/** Between two labels in the grid, in ms. */
const GRID_MS = 10_000;
/** Between two pictures where less motion is wanted, and between two descriptions in words, in ms. */
const CALM_MS = 1_000;
const BAR = 12;
const LANE = 28;

export class TimelineView {
  #canvas;
  #surface;
  #timeline;
  #running = false;
  #drawn = -Infinity;
  #described = -Infinity;

  /**
   * @param {HTMLCanvasElement} canvas with role="img"
   * @param {import("./timeline.js").Timeline} timeline
   */
  constructor(canvas, timeline) {
    this.#canvas = canvas;
    this.#timeline = timeline;
    this.#surface = new Surface(canvas, () => this.#draw(performance.now()));
  }

  start() {
    if (this.#running) return;
    this.#running = true;
    this.#run();
  }

  /** Leaves the last picture as it stands. */
  stop() {
    this.#running = false;
  }

  #run() {
    requestAnimationFrame((now) => {
      if (!this.#running) return;
      if (!CALM.matches || now - this.#drawn >= CALM_MS) this.#draw(now);
      this.#run();
    });
  }

  /** @param {number} now the page's clock, in ms */
  #draw(now) {
    this.#drawn = now;
    const view = this.#timeline.view(now);
    if (now - this.#described >= CALM_MS) {
      this.#described = now;
      this.#canvas.setAttribute("aria-label", describe(view));
    }
    const { width, height } = this.#surface;
    if (width === 0) return;
    const pen = this.#surface.clear();
    const x = (/** @type {number} */ at) => width * (1 - (view.now - at) / WINDOW_MS);
    const caller = (height - 2 * LANE) / 2 + LANE / 2;
    const agent = caller + LANE;
    const bars = (/** @type {Span[]} */ spans, /** @type {number} */ y, /** @type {number} */ thick) => {
      for (const span of spans) {
        pen.beginPath();
        pen.roundRect(x(span.from), y - thick / 2, Math.max(2, x(span.to) - x(span.from)), thick, thick / 2);
        pen.fill();
      }
    };

    pen.fillStyle = this.#surface.colour("--line");
    for (let at = Math.ceil((view.now - WINDOW_MS) / GRID_MS) * GRID_MS; at <= view.now; at += GRID_MS) {
      pen.fillRect(Math.round(x(at)), caller - LANE / 2, 1, 2 * LANE);
    }
    pen.fillRect(0, caller - 0.5, width, 1);
    pen.fillRect(0, agent - 0.5, width, 1);

    pen.fillStyle = this.#surface.colour("--overlap");
    for (const span of view.overlap) {
      pen.fillRect(x(span.from), caller - LANE / 2, Math.max(2, x(span.to) - x(span.from)), 2 * LANE);
    }
    pen.fillStyle = this.#surface.colour("--ink");
    bars(view.caller, caller, BAR);
    pen.fillStyle = this.#surface.colour("--accent");
    bars(view.speak, agent, 3);
    bars(view.agent, agent, BAR);

    pen.fillStyle = this.#surface.colour("--ink");
    for (const cut of view.cuts) pen.fillRect(Math.round(x(cut)) - 1, agent - LANE / 2 + 2, 2, LANE - 4);
  }
}
