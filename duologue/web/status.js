/** What the page is doing: one word for the style sheet, a line and a hint for the reader. No DOM here. */

import { faultMessage, queueMessage } from "./messages.js";

/** @typedef {"idle" | "asking" | "connecting" | "queued" | "live" | "ended"} Phase */
/** @typedef {import("./events.js").AgentState} AgentState */
/** @typedef {Exclude<Phase, "live"> | AgentState} PageState */
/**
 * @typedef {object} Situation
 * @property {Phase} phase
 * @property {AgentState} agent what the agent does, while live
 * @property {boolean} muted
 * @property {import("./messages.js").Trouble | null} trouble why there is no call
 * @property {import("./signalling.js").Queue | null} queue while queued
 * @property {ReadonlySet<string>} down stages that are restarting
 * @property {string} note what the server complained about last
 */
/** @typedef {"call" | "cancel" | "hang-up"} Action */
/**
 * @typedef {object} Status
 * @property {PageState} state
 * @property {string} label
 * @property {string} hint
 * @property {string} title the document's
 * @property {Action} action what the main button does
 * @property {string} actionLabel
 */

const NAME = "Duologue";

/** @type {Record<PageState, {label: string, hint: string}>} */
const LINES = {
  idle: { label: "Talk with the agent", hint: "Press Call and speak. You can interrupt at any time." },
  asking: { label: "Waiting for the microphone", hint: "Allow it when your browser asks." },
  connecting: { label: "Connecting", hint: "This takes a moment." },
  queued: { label: "All lines are busy", hint: "" },
  listening: { label: "Listening", hint: "Speak whenever you like." },
  thinking: { label: "Thinking", hint: "You can go on speaking." },
  speaking: { label: "Speaking", hint: "Speak up to interrupt." },
  ducked: { label: "Speaking softly", hint: "Go on, the agent hears you." },
  paused: { label: "Paused", hint: "The agent waits for you to go on." },
  ended: { label: "Call ended", hint: "The next call starts afresh." },
};

/** @type {Record<Phase, {action: Action, actionLabel: string}>} */
const ACTIONS = {
  idle: { action: "call", actionLabel: "Call" },
  asking: { action: "cancel", actionLabel: "Cancel" },
  connecting: { action: "cancel", actionLabel: "Cancel" },
  queued: { action: "cancel", actionLabel: "Leave the queue" },
  live: { action: "hang-up", actionLabel: "Hang up" },
  ended: { action: "call", actionLabel: "Call again" },
};

/**
 * @param {Situation} situation
 * @returns {{label: string, hint: string}}
 */
function lines({ phase, agent, muted, trouble, queue, down, note }) {
  if (phase === "ended" && trouble !== null) return faultMessage(trouble);
  if (phase === "queued" && queue !== null) return queueMessage(queue);
  if (phase !== "live") return LINES[phase];
  const { label, hint } = LINES[agent];
  if (down.size > 0) {
    const verb = down.size === 1 ? "is" : "are";
    return { label, hint: `The ${[...down].join(" and the ")} ${verb} restarting. The call goes on.` };
  }
  if (note !== "") return { label, hint: note };
  return muted ? { label, hint: "You are muted." } : { label, hint };
}

/**
 * @param {Situation} situation
 * @returns {Status}
 */
export function status(situation) {
  const { phase, agent, muted } = situation;
  const { label, hint } = lines(situation);
  const live = phase === "live";
  const title = phase === "idle" ? NAME : `${live && muted ? "Muted" : label} · ${NAME}`;
  return { state: live ? agent : phase, label, hint, title, ...ACTIONS[phase] };
}

/**
 * @param {number} seconds
 * @returns {string} m:ss
 */
export function duration(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
