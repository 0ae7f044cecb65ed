/** Shows the captions as a script of the conversation: one line a caption, the newest in view. */

import { cut } from "./captions.js";

/** @typedef {import("./captions.js").Caption} Caption */

/** How far from the end, in px, the reader may be and still be taken along to the newest line. */
const NEAR_END = 48;

const NAMES = { caller: "You", agent: "Agent" };

/**
 * @param {string} tag
 * @param {string} className
 * @param {string} [text]
 */
function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

export class CaptionsView {
  #log;
  /** @type {Map<string, {line: HTMLElement, drawn: string}>} */
  #lines = new Map();

  /** @param {HTMLElement} log a scrolling element with role="log" */
  constructor(log) {
    this.#log = log;
  }

  /** @param {Caption[]} captions */
  show(captions) {
    const atEnd = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < NEAR_END;
    const wanted = new Set(captions.map((caption) => caption.id));
    for (const [id, { line }] of this.#lines) {
      if (wanted.has(id)) continue;
      line.remove();
      this.#lines.delete(id);
    }
    captions.forEach((caption, index) => {
      const line = this.#line(caption);
      const place = this.#log.children[index] ?? null;
      if (place !== line) this.#log.insertBefore(line, place);
    });
    if (atEnd) this.#log.scrollTop = this.#log.scrollHeight;
  }

  /**
   * @param {Caption} caption
   * @returns {HTMLElement}
   */
  #line(caption) {
    const drawn = JSON.stringify(caption);
    const known = this.#lines.get(caption.id);
    if (known?.drawn === drawn) return known.line;
    const line = known?.line ?? this.#newLine(caption);
    const words = /** @type {HTMLElement} */ (line.lastElementChild);
    if (caption.final) {
      // A new element, not new text in the old one: the log announces additions, so that a screen reader
      // says every line once, when its words are settled.
      words.replaceWith(finalWords(caption));
    } else {
      words.textContent = caption.text;
    }
    line.dataset["final"] = String(caption.final);
    line.dataset["interrupted"] = String(caption.heard !== null);
    this.#lines.set(caption.id, { line, drawn });
    return line;
  }

  /** @param {Caption} caption */
  #newLine(caption) {
    const line = element("article", "line");
    line.dataset["who"] = caption.who;
    line.append(element("span", "who", NAMES[caption.who]), element("p", "words"));
    return line;
  }
}

/** @param {Caption} caption */
function finalWords(caption) {
  const { heard, unheard } = cut(caption);
  const words = element("p", "words", heard);
  if (caption.heard !== null) {
    words.append(" ", element("span", "cut", "interrupted here"));
    if (unheard !== "") {
      const rest = element("del", "unheard");
      rest.append(element("span", "spoken-only", "Not heard: "), unheard);
      words.append(" ", rest);
    }
  } else if (caption.failed) {
    words.append(" ", element("span", "cut", "the server failed here"));
  }
  return words;
}
