/**
 * The captions of a call: who said what, in the order in which it began. No DOM here.
 *
 * A caption's place is taken when its speech begins, its words come later; one without words is not shown.
 */

/**
 * @typedef {object} Caption
 * @property {string} id the conversation item's id
 * @property {"caller" | "agent"} who
 * @property {string} text all words; of an interrupted reply also those that were not heard
 * @property {boolean} final whether the words may still change
 * @property {string | null} heard of an interrupted reply, the part of `text` that was heard
 * @property {boolean} failed whether the reply ended because the server failed
 */

/** Captions kept; the oldest go first. A long call stays as light as a short one. */
export const CAPTION_LIMIT = 200;

export class Captions {
  /** @type {Map<string, Caption>} */
  #captions = new Map();
  /** @type {Map<string, string>} item of each response that has not ended */
  #items = new Map();

  /** @returns {Caption[]} those with words, oldest first */
  get shown() {
    return [...this.#captions.values()].filter((caption) => caption.text !== "");
  }

  /** @param {import("./events.js").Events} events */
  follow(events) {
    events.on("input_audio_buffer.speech_started", (event) => this.#caption(event.item_id, "caller"));
    events.on("duologue.transcript.partial", (event) => this.#callerSays(event.item_id, event.text, false));
    events.on("conversation.item.input_audio_transcription.completed",
      (event) => this.#callerSays(event.item_id, event.transcript, true));
    events.on("conversation.item.added", (event) => this.#itemAdded(event.item));
    events.on("response.output_item.added", (event) => {
      if (event.item.type === "message") this.#reply(event.response_id, event.item.id);
    });
    events.on("response.output_audio_transcript.delta", (event) => {
      const caption = this.#reply(event.response_id, event.item_id);
      if (!caption.final) caption.text += event.delta;
    });
    events.on("response.output_audio_transcript.done", (event) => {
      const caption = this.#reply(event.response_id, event.item_id);
      if (caption.heard === null) caption.text = event.transcript;
    });
    events.on("duologue.reply.heard", (event) => {
      const caption = this.#caption(event.item_id, "agent");
      caption.text = event.text;
      caption.heard = event.heard_text;
      caption.final = true;
    });
    events.on("response.done", (event) => this.#responseDone(event.response));
  }

  /** Ends the call: what was still being said is left as it stands. */
  close() {
    for (const caption of this.#captions.values()) caption.final = true;
    this.#items.clear();
  }

  /** Forgets everything, for a new call. */
  clear() {
    this.#captions.clear();
    this.#items.clear();
  }

  /**
   * @param {string} id
   * @param {string} text
   * @param {boolean} final
   */
  #callerSays(id, text, final) {
    const caption = this.#caption(id, "caller");
    if (caption.final && !final) return;
    caption.text = text;
    caption.final = final;
  }

  /** @param {import("./events.js").ItemAdded["item"]} item */
  #itemAdded(item) {
    if (item.type !== "message" || item.role !== "user" || !Array.isArray(item.content)) return;
    const typed = item.content.filter((part) => part.type === "input_text").map((part) => part.text ?? "");
    if (typed.length > 0) this.#callerSays(item.id, typed.join(" "), true);
  }

  /**
   * @param {string} response
   * @param {string} item
   */
  #reply(response, item) {
    this.#items.set(response, item);
    return this.#caption(item, "agent");
  }

  /** @param {import("./events.js").ResponseDone["response"]} response */
  #responseDone(response) {
    const caption = this.#captions.get(this.#items.get(response.id) ?? "");
    this.#items.delete(response.id);
    if (caption === undefined) return;
    caption.final = true;
    caption.failed = response.status === "failed";
  }

  /**
   * @param {string} id
   * @param {Caption["who"]} who
   * @returns {Caption}
   */
  #caption(id, who) {
    const known = this.#captions.get(id);
    if (known !== undefined) return known;
    const caption = { id, who, text: "", final: false, heard: null, failed: false };
    this.#captions.set(id, caption);
    for (const oldest of this.#captions.keys()) {
      if (this.#captions.size <= CAPTION_LIMIT) break;
      this.#captions.delete(oldest);
    }
    return caption;
  }
}

/**
 * Cuts an interrupted reply where the caller stopped hearing it.
 * @param {Caption} caption
 * @returns {{heard: string, unheard: string}}
 */
export function cut(caption) {
  if (caption.heard === null) return { heard: caption.text, unheard: "" };
  const whole = caption.text.startsWith(caption.heard);
  return { heard: caption.heard.trimEnd(), unheard: whole ? caption.text.slice(caption.heard.length).trim() : "" };
}
