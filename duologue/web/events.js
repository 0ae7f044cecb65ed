/**
 * The server's events: their types, the check that a message really is one, and who hears of it.
 *
 * Names and fields are OpenAI's (GA Realtime API) where they exist; those that begin with `duologue.` are this
 * server's own and come after the opt-in of {@link optIn}.
 */

/** @typedef {"listening" | "thinking" | "speaking" | "paused" | "ducked"} AgentState */
/** @typedef {{type: "session.created", session: {id: string, model: string}}} SessionCreated */
/** @typedef {{type: "input_audio_buffer.speech_started", item_id: string}} SpeechStarted */
/**
 * @typedef {{type: "conversation.item.added", item: {id: string, type: string, role?: string,
 *   content?: Array<{type: string, text?: string}>}}} ItemAdded
 */
/**
 * @typedef {{type: "conversation.item.input_audio_transcription.completed", item_id: string,
 *   transcript: string}} CallerTranscript
 */
/** @typedef {{type: "response.output_item.added", response_id: string, item: {id: string, type: string}}} ReplyItem */
/**
 * @typedef {{type: "response.output_audio_transcript.delta", response_id: string, item_id: string,
 *   delta: string}} ReplyDelta
 */
/**
 * @typedef {{type: "response.output_audio_transcript.done", response_id: string, item_id: string,
 *   transcript: string}} ReplyTranscript
 */
/** @typedef {{type: "response.done", response: {id: string, status: string}}} ResponseDone */
/** @typedef {{type: "error", error: {type: string, message: string}}} ServerError */
/** @typedef {{type: "duologue.state", state: AgentState, at_ms: number}} StateChanged media time */
/**
 * The unit that ended at `at_ms`, in media time.
 * @typedef {{type: "duologue.decision", choice: "listen" | "speak", speech: number, at_ms: number,
 *   unit_ms: number}} Decision
 */
/** @typedef {{type: "duologue.transcript.partial", item_id: string, text: string}} CallerPartial */
/** @typedef {{type: "duologue.reply.heard", item_id: string, text: string, heard_text: string}} ReplyHeard */
/** @typedef {{type: "duologue.latency", kind: "voice_to_voice" | "stop", ms: number}} LatencyMeasured */
/** @typedef {{type: "duologue.health", stage: string, up: boolean}} HealthChanged */

/**
 * @typedef {SessionCreated | SpeechStarted | ItemAdded | CallerTranscript | ReplyItem | ReplyDelta
 *   | ReplyTranscript | ResponseDone | ServerError | StateChanged | Decision | CallerPartial | ReplyHeard
 *   | LatencyMeasured | HealthChanged} ServerEvent
 */

/**
 * What a field must be: a type's name, the list of words allowed, or the fields of an object.
 * @typedef {"string" | "number" | "boolean" | ReadonlyArray<string> | {readonly [field: string]: Shape}} Shape
 */

/** @type {Record<ServerEvent["type"], Shape>} */
const SHAPES = {
  "session.created": { session: { id: "string", model: "string" } },
  "input_audio_buffer.speech_started": { item_id: "string" },
  "conversation.item.added": { item: { id: "string", type: "string" } },
  "conversation.item.input_audio_transcription.completed": { item_id: "string", transcript: "string" },
  "response.output_item.added": { response_id: "string", item: { id: "string", type: "string" } },
  "response.output_audio_transcript.delta": { response_id: "string", item_id: "string", delta: "string" },
  "response.output_audio_transcript.done": { response_id: "string", item_id: "string", transcript: "string" },
  "response.done": { response: { id: "string", status: "string" } },
  "error": { error: { type: "string", message: "string" } },
  "duologue.state": { state: ["listening", "thinking", "speaking", "paused", "ducked"], at_ms: "number" },
  "duologue.decision": { choice: ["listen", "speak"], speech: "number", at_ms: "number", unit_ms: "number" },
  "duologue.transcript.partial": { item_id: "string", text: "string" },
  "duologue.reply.heard": { item_id: "string", text: "string", heard_text: "string" },
  "duologue.latency": { kind: ["voice_to_voice", "stop"], ms: "number" },
  "duologue.health": { stage: "string", up: "boolean" },
};

/**
 * @param {unknown} value
 * @param {Shape} shape
 * @returns {boolean}
 */
function fits(value, shape) {
  if (typeof shape === "string") return typeof value === shape;
  if (Array.isArray(shape)) return shape.includes(value);
  if (typeof value !== "object" || value === null) return false;
  const fields = /** @type {Record<string, unknown>} */ (value);
  return Object.entries(shape).every(([name, inner]) => fits(fields[name], inner));
}

/**
 * @param {string} text one message of the data channel
 * @returns {ServerEvent | null} null for what this page has no use for, and for what is malformed
 */
export function parseEvent(text) {
  /** @type {unknown} */
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof message !== "object" || message === null || !("type" in message)) return null;
  const type = message.type;
  if (typeof type !== "string" || !Object.hasOwn(SHAPES, type)) return null;
  const shape = SHAPES[/** @type {ServerEvent["type"]} */ (type)];
  return fits(message, shape) ? /** @type {ServerEvent} */ (message) : null;
}

/**
 * @template {ServerEvent["type"]} T
 * @typedef {(event: Extract<ServerEvent, {type: T}>) => void} Listener
 */

/** Hands each event to those who asked for its type. */
export class Events {
  /** @type {Map<string, Array<(event: any) => void>>} */
  #listeners = new Map();

  /**
   * @template {ServerEvent["type"]} T
   * @param {T} type
   * @param {Listener<T>} listener
   */
  on(type, listener) {
    const known = this.#listeners.get(type) ?? [];
    this.#listeners.set(type, [...known, listener]);
  }

  /** @param {string} text one message of the data channel */
  receive(text) {
    const event = parseEvent(text);
    if (event === null) return;
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }
}

/** The first message of a call: asks for the events beyond OpenAI's. */
export function optIn() {
  return { type: "session.update", session: { type: "realtime", duologue: { events: true } } };
}

/**
 * What is sent when the caller types instead of speaking.
 * @param {string} text
 * @returns {object[]}
 */
export function typedMessages(text) {
  const item = { type: "message", role: "user", content: [{ type: "input_text", text }] };
  return [{ type: "conversation.item.create", item }, { type: "response.create" }];
}
