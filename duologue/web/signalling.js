/** What the server answers to an offer, and how long a caller in the queue goes on asking. No DOM, no network. */

/** @typedef {{ticket: string, position: number, eta_s: number | null}} Queue place in the queue, from 1 */
/**
 * Why there is no call. `detail` is the server's own sentence, if it gave one.
 * @typedef {{fault: "full" | "draining" | "down" | "refused", detail: string}} Refusal
 */
/** @typedef {{answer: string, location: string | null}} Accepted */

/** @type {ReadonlyMap<unknown, Refusal["fault"]>} what the page has its own words for, by the server's `error.code` */
const FAULTS = new Map([["queue_full", "full"], ["draining", "draining"], ["stage_down", "down"]]);

/** Between two questions of a waiting caller, in ms: several fit into the time a ticket lives. */
export const ASK_AGAIN_MS = 2_000;
/** Questions in a row that may get no answer at all before a waiting caller gives up. */
export const MAX_SILENT = 3;

/**
 * @param {unknown} value
 * @returns {Record<string, unknown>} the value's fields; none if it is no object
 */
function fieldsOf(value) {
  return typeof value === "object" && value !== null ? /** @type {Record<string, unknown>} */ (value) : {};
}

/**
 * @param {string} body
 * @returns {unknown}
 */
function json(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/**
 * Reads the answer to `POST v1/realtime/calls`. A refusal is
 * `{"error": {"code", "message"}, "queue"?: {"ticket", "position", "eta_s"}}`; with `queue` it is not final.
 * @param {number} status
 * @param {string} body
 * @param {string | null} location the Location header
 * @returns {Accepted | Queue | Refusal}
 */
export function readAnswer(status, body, location) {
  if (status >= 200 && status < 300) return { answer: body, location };
  const fields = fieldsOf(json(body));
  const { ticket, position, eta_s: eta } = fieldsOf(fields["queue"]);
  if (typeof ticket === "string" && typeof position === "number") {
    return { ticket, position, eta_s: typeof eta === "number" ? eta : null };
  }
  const { code, message } = fieldsOf(fields["error"]);
  const detail = typeof message === "string" ? message : `The server answered with status ${status}.`;
  return { fault: FAULTS.get(code) ?? "refused", detail };
}

/**
 * @param {number | null} seconds
 * @returns {string} a wait in the words of a person, not of a clock
 */
export function waitInWords(seconds) {
  if (seconds === null) return "";
  if (seconds < 10) return "a few seconds";
  if (seconds < 55) return `about ${Math.round(seconds / 10) * 10} seconds`;
  const minutes = Math.round(seconds / 60);
  return minutes <= 1 ? "about a minute" : `about ${minutes} minutes`;
}
