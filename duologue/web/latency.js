/** This call's latencies, as the server measured them. No DOM here. */

/** @typedef {import("./events.js").LatencyMeasured["kind"]} LatencyKind */
/** @typedef {{last: number, p50: number, p95: number, count: number}} LatencySummary all but `count` in ms */

/** Newest measurements that are counted in. */
export const LATENCY_LIMIT = 500;

/**
 * The smallest value that at least the share `q` of all values do not exceed (nearest rank).
 * @param {number[]} values at least one
 * @param {number} q 0 < q <= 1
 * @returns {number}
 */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return /** @type {number} */ (sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)]);
}

export class Latencies {
  /** @type {Record<LatencyKind, number[]>} */
  #values = { voice_to_voice: [], stop: [] };

  /**
   * @param {LatencyKind} kind
   * @param {number} ms
   */
  add(kind, ms) {
    const values = this.#values[kind];
    values.push(ms);
    if (values.length > LATENCY_LIMIT) values.shift();
  }

  /**
   * @param {LatencyKind} kind
   * @returns {LatencySummary | null} null before the first measurement
   */
  summary(kind) {
    const values = this.#values[kind];
    const last = values.at(-1);
    if (last === undefined) return null;
    return { last, p50: quantile(values, 0.5), p95: quantile(values, 0.95), count: values.length };
  }

  clear() {
    this.#values = { voice_to_voice: [], stop: [] };
  }
}
