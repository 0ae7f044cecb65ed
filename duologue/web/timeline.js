/**
 * Who spoke when in the last minute, and what was decided. No DOM here.
 *
 * Its clock is the call's media time, as the server's events give it. Between two events it runs on with the
 * page's own clock, so that the picture does not move in jerks.
 */

/** How much of the past is kept, in ms. */
export const WINDOW_MS = 60_000;
/** A unit with at least this speech probability is one in which the caller speaks. */
export const SPEECH = 0.5;
/** How far the clock runs on when events stop coming, in ms: longer than any pipeline's unit. */
export const RUN_ON_MS = 1_500;

/** @typedef {{from: number, to: number}} Span media time in ms */
/**
 * @typedef {object} TimelineView
 * @property {number} now media time in ms; the window ends here
 * @property {Span[]} caller when the caller spoke
 * @property {Span[]} agent when the agent could be heard
 * @property {Span[]} overlap when both
 * @property {Span[]} speak units for which the model chose to speak
 * @property {number[]} cuts where a reply was interrupted
 */

/**
 * @param {Span[]} spans in order
 * @param {number} from
 * @param {number} to
 */
function extend(spans, from, to) {
  const last = spans.at(-1);
  if (last !== undefined && last.to >= from) last.to = Math.max(last.to, to);
  else spans.push({ from, to });
}

/**
 * @param {Span[]} spans
 * @param {number} start
 * @returns {Span[]} what of them lies after `start`
 */
function since(spans, start) {
  return spans.filter((span) => span.to > start).map((span) => ({ from: Math.max(span.from, start), to: span.to }));
}

/**
 * @param {Span[]} a in order, each free of overlap
 * @param {Span[]} b likewise
 * @returns {Span[]}
 */
export function intersect(a, b) {
  /** @type {Span[]} */
  const both = [];
  for (const one of a) {
    for (const other of b) {
      const from = Math.max(one.from, other.from);
      const to = Math.min(one.to, other.to);
      if (from < to) both.push({ from, to });
    }
  }
  return both;
}

/** @param {Span[]} spans */
export function total(spans) {
  return spans.reduce((sum, span) => sum + span.to - span.from, 0);
}

export class Timeline {
  /** @type {Span[]} */ #caller = [];
  /** @type {Span[]} */ #speak = [];
  /** @type {Span[]} */ #agent = [];
  /** @type {number[]} */ #cuts = [];
  /** @type {number | null} */ #audibleSince = null;
  #end = 0;
  #arrived = 0;

  /**
   * @param {import("./events.js").Decision} decision
   * @param {number} now the page's clock, in ms
   */
  decided(decision, now) {
    const to = decision.at_ms;
    const from = to - decision.unit_ms;
    if (decision.speech >= SPEECH) extend(this.#caller, from, to);
    if (decision.choice === "speak") extend(this.#speak, from, to);
    this.#advance(to, now);
    this.#forget();
  }

  /**
   * @param {import("./events.js").StateChanged} change
   * @param {number} now the page's clock, in ms
   */
  changed({ state, at_ms: at }, now) {
    const audible = state === "speaking" || state === "ducked";
    this.#advance(at, now);
    if (audible && this.#audibleSince === null) this.#audibleSince = at;
    if (!audible && this.#audibleSince !== null) {
      extend(this.#agent, this.#audibleSince, at);
      this.#audibleSince = null;
    }
  }

  /** @param {number} now the page's clock, in ms */
  interrupted(now) {
    this.#cuts.push(this.now(now));
  }

  /**
   * @param {number} at media time in ms
   * @param {number} now the page's clock, in ms
   */
  #advance(at, now) {
    // A decision is about a unit that ended a while ago; the clock does not go back for it.
    if (at <= this.now(now) && this.#end !== 0) return;
    this.#end = at;
    this.#arrived = now;
  }

  /**
   * @param {number} now the page's clock, in ms
   * @returns {number} media time in ms
   */
  now(now) {
    if (this.#end === 0) return 0;
    return this.#end + Math.min(Math.max(0, now - this.#arrived), RUN_ON_MS);
  }

  /**
   * @param {number} now the page's clock, in ms
   * @returns {TimelineView}
   */
  view(now) {
    const at = this.now(now);
    const start = at - WINDOW_MS;
    const agent = since(this.#agent, start);
    if (this.#audibleSince !== null && this.#audibleSince < at) {
      extend(agent, Math.max(this.#audibleSince, start), at);
    }
    const caller = since(this.#caller, start);
    return {
      now: at,
      caller,
      agent,
      overlap: intersect(caller, agent),
      speak: since(this.#speak, start),
      cuts: this.#cuts.filter((cut) => cut > start),
    };
  }

  clear() {
    this.#caller = [];
    this.#speak = [];
    this.#agent = [];
    this.#cuts = [];
    this.#audibleSince = null;
    this.#end = 0;
    this.#arrived = 0;
  }

  #forget() {
    const start = this.#end - WINDOW_MS;
    this.#caller = since(this.#caller, start);
    this.#speak = since(this.#speak, start);
    this.#agent = since(this.#agent, start);
    this.#cuts = this.#cuts.filter((cut) => cut > start);
  }
}

/**
 * The picture in words, for those who do not see it.
 * @param {TimelineView} view
 * @returns {string}
 */
export function describe(view) {
  const seconds = (/** @type {Span[]} */ spans) => `${(total(spans) / 1000).toFixed(1)} seconds`;
  const cuts = view.cuts.length === 1 ? "1 interruption" : `${view.cuts.length} interruptions`;
  return `Last minute: you spoke ${seconds(view.caller)}, the agent ${seconds(view.agent)}, `
    + `both at once ${seconds(view.overlap)}; ${cuts}.`;
}
