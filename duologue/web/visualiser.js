/**
 * Two voices as two shapes: a body for the agent, a ring around it for the caller.
 *
 * The state sets their posture, the real audio levels move them. Where less motion is wanted the posture alone
 * is drawn, once for every change of state.
 */

import { CALM, Surface } from "./canvas.js";
import { SILENCE } from "./levels.js";

/** @typedef {import("./status.js").PageState} PageState */
/** @typedef {import("./levels.js").Reading} Reading */
/**
 * A posture; all 0..1 but `size`, which is relative to the resting body.
 * @typedef {object} Posture
 * @property {number} size
 * @property {number} body how solid the agent's body is
 * @property {number} flow how much its edge moves by itself
 * @property {number} halo how far its echoes reach
 * @property {number} ring how visible the caller's ring is
 * @property {number} orbit a short arc that travels on the ring: something is under way
 * @property {number} comet a short arc that travels along the body: the agent thinks
 * @property {number} bars the two bars of a pause
 */

/** @type {Posture} */
const REST = { size: 0.86, body: 0.9, flow: 0.25, halo: 0.2, ring: 0.35, orbit: 0, comet: 0, bars: 0 };
/** @type {Record<PageState, Posture>} */
const POSTURES = {
  idle: REST,
  asking: { ...REST, size: 0.7, body: 0.22, flow: 0, halo: 0, ring: 0.25, orbit: 1 },
  connecting: { ...REST, size: 0.7, body: 0.22, flow: 0, halo: 0, ring: 0.25, orbit: 1 },
  queued: { ...REST, size: 0.62, body: 0.22, flow: 0, halo: 0, ring: 0.25, orbit: 0.7 },
  listening: { ...REST, size: 0.74, body: 0.82, flow: 0.15, halo: 0, ring: 1 },
  thinking: { ...REST, size: 0.74, body: 0.82, flow: 0.6, halo: 0, ring: 0.45, comet: 1 },
  speaking: { ...REST, size: 0.9, body: 1, flow: 0.5, halo: 1, ring: 0.45 },
  ducked: { ...REST, size: 0.78, body: 0.6, flow: 0.35, halo: 0.4, ring: 1 },
  paused: { ...REST, size: 0.74, body: 0.3, flow: 0, halo: 0, ring: 1, bars: 1 },
  ended: { ...REST, size: 0.62, body: 0.18, flow: 0, halo: 0, ring: 0.2 },
};

/** Time constants, in seconds, with which postures and levels follow. */
const POSTURE_S = 0.22;
const ATTACK_S = 0.04;
const RELEASE_S = 0.22;
/** Points of a closed outline. */
const POINTS = 144;
/** Ring radius relative to the resting body. */
const RING = 1.34;

/**
 * @param {number} from
 * @param {number} to
 * @param {number} dt seconds
 * @param {number} constant seconds
 */
function follow(from, to, dt, constant) {
  return to + (from - to) * Math.exp(-dt / constant);
}

/** A reading that rises fast and falls slowly, as the eye likes it. */
class Smoothed {
  level = 0;
  bands = SILENCE.bands.map(() => 0);

  /**
   * @param {Reading} reading
   * @param {number} dt seconds
   */
  step(reading, dt) {
    const ease = (/** @type {number} */ from, /** @type {number} */ to) =>
      follow(from, to, dt, to > from ? ATTACK_S : RELEASE_S);
    this.level = ease(this.level, reading.level);
    this.bands = this.bands.map((band, index) => ease(band, reading.bands[index] ?? 0));
  }
}

export class Visualiser {
  #surface;
  /** @type {PageState} */
  #state = "idle";
  #muted = false;
  #posture = { ...REST };
  #agent = new Smoothed();
  #caller = new Smoothed();
  #time = 0;
  #last = 0;
  #sources;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{agent: () => Reading, caller: () => Reading}} sources
   */
  constructor(canvas, sources) {
    this.#sources = sources;
    this.#surface = new Surface(canvas, () => this.#still());
    CALM.addEventListener("change", () => this.#run());
    this.#run();
  }

  /**
   * @param {PageState} state
   * @param {boolean} muted
   */
  show(state, muted) {
    if (state === this.#state && muted === this.#muted) return;
    this.#state = state;
    this.#muted = muted;
    this.#still();
  }

  /** Draws the posture itself where there is to be no motion. */
  #still() {
    if (!CALM.matches) return;
    this.#posture = { ...POSTURES[this.#state], flow: 0 };
    this.#agent = new Smoothed();
    this.#caller = new Smoothed();
    this.#time = 0;
    this.#draw();
  }

  #run() {
    if (CALM.matches) return;
    requestAnimationFrame((now) => {
      // A tab that was in the background does not catch up.
      const dt = Math.min(0.1, Math.max(0, (now - this.#last) / 1000));
      this.#last = now;
      this.#step(dt);
      this.#draw();
      this.#run();
    });
  }

  /** @param {number} dt seconds */
  #step(dt) {
    this.#time += dt;
    const wanted = POSTURES[this.#state];
    for (const key of /** @type {Array<keyof Posture>} */ (Object.keys(wanted))) {
      this.#posture[key] = follow(this.#posture[key], wanted[key], dt, POSTURE_S);
    }
    this.#agent.step(this.#sources.agent(), dt);
    this.#caller.step(this.#muted ? SILENCE : this.#sources.caller(), dt);
  }

  #draw() {
    const { width, height } = this.#surface;
    const pen = this.#surface.clear();
    pen.save();
    pen.translate(width / 2, height / 2);
    const unit = Math.min(width, height) / 2 / 1.62;
    this.#drawRing(pen, unit * RING);
    this.#drawBody(pen, unit * this.#posture.size * (1 + 0.1 * this.#agent.level));
    pen.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} radius
   */
  #drawRing(pen, radius) {
    const { ring, orbit } = this.#posture;
    const { level, bands } = this.#caller;
    const t = this.#time;
    pen.lineCap = "round";
    pen.strokeStyle = this.#surface.colour("--ink");
    pen.globalAlpha = ring * (0.4 + 0.5 * level);
    pen.lineWidth = 1.5 + 1.5 * level;
    pen.setLineDash(this.#muted ? [2, 9] : []);
    outline(pen, radius, (angle) => bands.reduce((sum, band, index) =>
      sum + band * level * 0.035 * Math.cos((5 + 2 * index) * angle + t * (1.2 + 0.7 * index)), 0.04 * level));
    pen.stroke();
    pen.setLineDash([]);
    if (orbit > 0.01) {
      pen.strokeStyle = this.#surface.colour("--accent");
      pen.globalAlpha = orbit;
      pen.lineWidth = 3;
      arc(pen, radius, t * 2.6 - Math.PI / 2, 1.1);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} radius
   */
  #drawBody(pen, radius) {
    const { body, flow, halo, comet, bars } = this.#posture;
    const { level, bands } = this.#agent;
    const t = this.#time;
    const edge = (/** @type {number} */ lag) => (/** @type {number} */ angle) =>
      0.012 * flow * Math.sin(t * 0.9 - lag)
      + bands.reduce((sum, band, index) => sum + (0.012 * flow + 0.055 * band * level)
        * Math.cos((2 + index) * angle + (index % 2 ? -1 : 1) * (t * (0.5 + 0.35 * index)) + index - lag), 0);
    pen.fillStyle = this.#surface.colour("--accent");
    for (const echo of [2, 1]) {
      pen.globalAlpha = body * halo * 0.11;
      outline(pen, radius * (1 + echo * halo * (0.04 + 0.055 * level)), edge(echo * 0.5));
      pen.fill();
    }
    const light = pen.createRadialGradient(-radius * 0.35, -radius * 0.45, radius * 0.1, 0, 0, radius * 1.15);
    light.addColorStop(0, this.#surface.colour("--accent-light"));
    light.addColorStop(1, this.#surface.colour("--accent"));
    pen.fillStyle = light;
    pen.globalAlpha = body;
    outline(pen, radius, edge(0));
    pen.fill();
    if (comet > 0.01) {
      pen.strokeStyle = this.#surface.colour("--accent");
      pen.globalAlpha = comet;
      pen.lineWidth = 3;
      arc(pen, radius * 1.2, t * 2 - Math.PI / 2, 0.7);
      arc(pen, radius * 1.2, t * 2 + Math.PI / 2, 0.7);
    }
    if (bars > 0.01) {
      pen.fillStyle = this.#surface.colour("--ink");
      pen.globalAlpha = bars;
      for (const side of [-1, 1]) {
        pen.beginPath();
        pen.roundRect(side * radius * 0.2 - radius * 0.075, -radius * 0.3, radius * 0.15, radius * 0.6, radius * 0.075);
        pen.fill();
      }
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} radius
 * @param {(angle: number) => number} swell relative to the radius
 */
function outline(pen, radius, swell) {
  pen.beginPath();
  for (let point = 0; point < POINTS; point += 1) {
    const angle = (point / POINTS) * 2 * Math.PI;
    const r = radius * (1 + swell(angle));
    pen.lineTo(r * Math.cos(angle), r * Math.sin(angle));
  }
  pen.closePath();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} radius
 * @param {number} start radians
 * @param {number} length radians
 */
function arc(pen, radius, start, length) {
  pen.beginPath();
  pen.arc(0, 0, radius, start, start + length);
  pen.stroke();
}
