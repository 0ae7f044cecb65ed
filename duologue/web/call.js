/**
 * One call: WebRTC to the server, events on a data channel, signalling by one POST and one DELETE.
 *
 * No ICE servers: the server's answer carries its host candidates and finds the browser's as peer-reflexive.
 */

import { optIn } from "./events.js";
import { ASK_AGAIN_MS, MAX_SILENT, readAnswer } from "./signalling.js";

/** From the answer until the data channel is open; longer means that media packets do not get through. */
const CONNECT_TIMEOUT_MS = 15_000;
/** How long a connection may be gone before the call counts as lost: Wi-Fi roaming takes a second or two. */
const DISCONNECTED_MS = 5_000;

/** @typedef {import("./signalling.js").Refusal["fault"] | "unreachable" | "blocked" | "lost" | "ended"} CallFault */

/**
 * @typedef {object} CallListener
 * @property {(queue: import("./signalling.js").Queue) => void} onQueue the caller waits
 * @property {() => void} onAccepted the server has taken the call; media is being connected
 * @property {() => void} onOpen the call is live
 * @property {(stream: MediaStream) => void} onStream the agent's voice
 * @property {(text: string) => void} onMessage one event of the server
 * @property {(fault: CallFault, detail: string) => void} onFault the call is over, and not by the caller
 */

export class Call {
  #peer = new RTCPeerConnection();
  #channel = this.#peer.createDataChannel("oai-events");
  /** @type {RTCRtpSender} */
  #sender;
  /** @type {URL | null} */
  #location = null;
  #live = false;
  #over = false;
  /** @type {number | undefined} */
  #timer = undefined;
  #wakeWaiting = () => {};
  #endpoint;
  #listener;

  /**
   * @param {URL} endpoint where calls are made
   * @param {MediaStreamTrack} microphone
   * @param {CallListener} listener
   */
  constructor(endpoint, microphone, listener) {
    this.#endpoint = endpoint;
    this.#listener = listener;
    this.#sender = this.#peer.addTrack(microphone, new MediaStream([microphone]));
    this.#peer.ontrack = (event) => listener.onStream(event.streams[0] ?? new MediaStream([event.track]));
    this.#peer.onconnectionstatechange = () => this.#connectionChanged();
    this.#channel.onopen = () => this.#opened();
    this.#channel.onmessage = (event) => {
      if (typeof event.data === "string") listener.onMessage(event.data);
    };
    this.#channel.onclose = () => this.#fail(this.#peer.connectionState === "connected" ? "ended" : "lost");
  }

  /** Asks for the call until it is taken, refused or hung up. Never throws: faults go to the listener. */
  async start() {
    try {
      await this.#peer.setLocalDescription();
      const accepted = await this.#ask(this.#peer.localDescription?.sdp ?? "");
      if (accepted === null || this.#over) return;
      this.#listener.onAccepted();
      this.#timer = setTimeout(() => this.#fail("blocked"), CONNECT_TIMEOUT_MS);
      await this.#peer.setRemoteDescription({ type: "answer", sdp: accepted.answer });
    } catch (error) {
      console.error(error);
      this.#fail("refused", "The browser could not use the server’s answer.");
    }
  }

  /**
   * @param {string} offer SDP
   * @returns {Promise<import("./signalling.js").Accepted | null>} null when the call is over
   */
  async #ask(offer) {
    /** @type {string | null} */
    let ticket = null;
    let silent = 0;
    while (!this.#over) {
      const result = await this.#post(offer, ticket);
      if (result === null) {
        silent += 1;
        if (ticket === null || silent >= MAX_SILENT) {
          this.#fail("unreachable");
          return null;
        }
      } else if ("answer" in result) {
        return result;
      } else if ("fault" in result) {
        this.#fail(result.fault, result.detail);
        return null;
      } else if (!this.#over) {
        silent = 0;
        ticket = result.ticket;
        this.#listener.onQueue(result);
      }
      if (!this.#over) await this.#pause(ASK_AGAIN_MS);
    }
    return null;
  }

  /**
   * @param {string} offer SDP
   * @param {string | null} ticket
   * @returns {Promise<ReturnType<typeof readAnswer> | null>} null when nobody answered
   */
  async #post(offer, ticket) {
    /** @type {Record<string, string>} */
    const headers = { "Content-Type": "application/sdp" };
    if (ticket !== null) headers["X-Duologue-Ticket"] = ticket;
    try {
      const response = await fetch(this.#endpoint, { method: "POST", headers, body: offer });
      const result = readAnswer(response.status, await response.text(), response.headers.get("Location"));
      if ("answer" in result && result.location !== null) {
        this.#location = new URL(result.location, response.url);
        // Hung up while the offer was under way: the server made a call that nobody wants.
        if (this.#over) this.#release();
      }
      return result;
    } catch {
      return null;
    }
  }

  /** @param {number} ms */
  #pause(ms) {
    return new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
      this.#wakeWaiting = () => resolve();
      this.#timer = setTimeout(resolve, ms);
    });
  }

  #opened() {
    clearTimeout(this.#timer);
    this.#live = true;
    this.send(optIn());
    this.#listener.onOpen();
  }

  #connectionChanged() {
    const state = this.#peer.connectionState;
    if (state === "failed" || state === "closed") this.#fail(this.#live ? "lost" : "blocked");
    if (!this.#live) return;
    clearTimeout(this.#timer);
    if (state === "disconnected") this.#timer = setTimeout(() => this.#fail("lost"), DISCONNECTED_MS);
  }

  /** @param {object} message */
  send(message) {
    if (this.#channel.readyState === "open") this.#channel.send(JSON.stringify(message));
  }

  /** @param {MediaStreamTrack} microphone the one to send from now on */
  async useMicrophone(microphone) {
    await this.#sender.replaceTrack(microphone);
  }

  /** Ends the call from this side; safe to call twice, and while the page goes away. */
  hangUp() {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#wakeWaiting();
    this.#release();
    this.#channel.onclose = null;
    this.#peer.close();
  }

  #release() {
    if (this.#location === null) return;
    // keepalive: the request outlives a page that is being closed. A server that cannot be reached frees the
    // call by itself.
    fetch(this.#location, { method: "DELETE", keepalive: true }).catch(() => {});
    this.#location = null;
  }

  /**
   * @param {CallFault} fault
   * @param {string} [detail]
   */
  #fail(fault, detail = "") {
    if (this.#over) return;
    this.hangUp();
    this.#listener.onFault(fault, detail);
  }
}
