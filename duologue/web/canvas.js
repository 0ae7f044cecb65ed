/** A canvas that is as sharp as its screen and knows the style sheet's colours. */

const DARK = matchMedia("(prefers-color-scheme: dark)");
/** Whether the person asked their system for less motion. */
export const CALM = matchMedia("(prefers-reduced-motion: reduce)");

export class Surface {
  /** In CSS px. */
  width = 0;
  /** In CSS px. */
  height = 0;
  /** @type {Map<string, string>} */
  #colours = new Map();
  #canvas;
  #context;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => void} onChange called when size, colours or the wish for calm change
   */
  constructor(canvas, onChange) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("This browser has no 2D canvas.");
    this.#canvas = canvas;
    this.#context = context;
    const changed = () => {
      this.#measure();
      onChange();
    };
    new ResizeObserver(changed).observe(canvas);
    DARK.addEventListener("change", changed);
    CALM.addEventListener("change", changed);
  }

  #measure() {
    const scale = devicePixelRatio;
    this.width = this.#canvas.clientWidth;
    this.height = this.#canvas.clientHeight;
    this.#canvas.width = Math.round(this.width * scale);
    this.#canvas.height = Math.round(this.height * scale);
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.#colours.clear();
  }

  /**
   * @param {string} name a custom property of the style sheet, such as --accent
   * @returns {string}
   */
  colour(name) {
    let value = this.#colours.get(name);
    if (value === undefined) {
      value = getComputedStyle(this.#canvas).getPropertyValue(name).trim();
      this.#colours.set(name, value);
    }
    return value;
  }

  /** @returns {CanvasRenderingContext2D} wiped, in CSS px */
  clear() {
    this.#context.clearRect(0, 0, this.width, this.height);
    return this.#context;
  }
}
