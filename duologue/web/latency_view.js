/** Writes this call's latencies into the cells of a table. */

/** @type {import("./latency.js").LatencyKind[]} */
const KINDS = ["voice_to_voice", "stop"];

/**
 * @param {HTMLElement} table rows with data-kind, cells with data-figure "last", "p50" or "p95"
 * @param {import("./latency.js").Latencies} latencies
 */
export function showLatencies(table, latencies) {
  for (const kind of KINDS) {
    const summary = latencies.summary(kind);
    for (const figure of /** @type {const} */ (["last", "p50", "p95"])) {
      const cell = table.querySelector(`[data-kind="${kind}"] [data-figure="${figure}"]`);
      if (cell !== null) cell.textContent = summary === null ? "–" : `${Math.round(summary[figure])} ms`;
    }
  }
}
