/** Keeps the screen on during a call; a convenience, so a refusal is not worth a word. */

export class ScreenLock {
  /** @type {WakeLockSentinel | null} */
  #lock = null;
  #wanted = false;

  constructor() {
    // Browsers drop the lock when the page is hidden.
    document.addEventListener("visibilitychange", () => this.#take());
  }

  hold() {
    this.#wanted = true;
    this.#take();
  }

  release() {
    this.#wanted = false;
    this.#lock?.release().catch(() => {});
    this.#lock = null;
  }

  async #take() {
    if (!this.#wanted || document.visibilityState !== "visible" || !("wakeLock" in navigator)) return;
    try {
      const lock = await navigator.wakeLock.request("screen");
      if (this.#wanted) this.#lock = lock;
      else await lock.release();
    } catch {
      // Low battery, or the system forbids it.
    }
  }
}
