/** What the page says when something is in the way: what happened, and what to do. No DOM here. */

import { waitInWords } from "./signalling.js";

/** @typedef {import("./call.js").CallFault | import("./devices.js").MicrophoneFault} Fault */
/** @typedef {{fault: Fault, detail: string, userAgent: string}} Trouble `detail` is the server's own sentence */
/** @typedef {{label: string, hint: string}} Message what happened, and what to do */

/**
 * @param {string} userAgent
 * @returns {string} where this browser keeps the permission
 */
export function microphoneHelp(userAgent) {
  if (/iPhone|iPad/.test(userAgent)) {
    return "Tap the page menu beside the address, open Website Settings and allow the microphone. "
      + "Then call again.";
  }
  if (/Firefox\//.test(userAgent)) {
    return "Click the crossed-out microphone beside the address, clear the block, then call again "
      + "and choose Allow.";
  }
  if (/Chrom(e|ium)\//.test(userAgent)) {
    return "Open the site settings beside the address, set Microphone to Allow, then call again.";
  }
  return "Open your browser’s settings for this website, allow the microphone, then call again.";
}

/**
 * @param {Trouble} trouble
 * @returns {Message}
 */
export function faultMessage({ fault, detail, userAgent }) {
  switch (fault) {
    case "denied":
      return { label: "The microphone is blocked", hint: microphoneHelp(userAgent) };
    case "missing":
      return {
        label: "No microphone found",
        hint: "Connect one, or switch it on in your system’s sound settings, then call again.",
      };
    case "busy":
      return {
        label: "The microphone cannot be used",
        hint: "Another program may hold it, or it was unplugged. Close that program or choose another "
          + "microphone, then call again.",
      };
    case "insecure":
      return {
        label: "This address is not secure",
        hint: "Browsers give the microphone only to pages from https or from localhost. "
          + "Open the page from one of those.",
      };
    case "unsupported":
      return {
        label: "This browser cannot make calls",
        hint: "A current Chrome, Edge, Firefox or Safari can.",
      };
    case "full":
      return {
        label: "All lines are busy",
        hint: "The queue is full too. Try again in a few minutes.",
      };
    case "draining":
      return {
        label: "The server is about to restart",
        hint: "It takes no new calls. Try again in a minute.",
      };
    case "down":
      return {
        label: "The agent is not ready",
        hint: "A part of it is being restarted. Try again in a minute.",
      };
    case "refused":
      return { label: "The call was not accepted", hint: detail };
    case "unreachable":
      return {
        label: "The server does not answer",
        hint: "Check your connection to the network, then call again.",
      };
    case "blocked":
      return {
        label: "No sound gets through",
        hint: "The server took the call, but no audio arrived. A firewall or VPN may block UDP.",
      };
    case "lost":
      return {
        label: "The connection was lost",
        hint: "The conversation so far is still here. A new call starts afresh.",
      };
    case "ended":
      return { label: "The server ended the call", hint: "You can call again." };
  }
}

/**
 * @param {import("./signalling.js").Queue} queue
 * @returns {Message}
 */
export function queueMessage(queue) {
  const wait = waitInWords(queue.eta_s);
  const ahead = queue.position <= 1 ? "You are next" : `You are number ${queue.position}`;
  return {
    label: "All lines are busy",
    hint: `${ahead} in the queue.${wait === "" ? "" : ` Your turn comes in ${wait}.`} `
      + "The call starts by itself: keep this page open.",
  };
}
