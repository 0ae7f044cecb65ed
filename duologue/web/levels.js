/** How loud a stream is and where in the spectrum, for the visualiser. */

/** Mapped to level 0 and 1, in dBFS: a quiet room, and speech close to the microphone. */
const QUIET_DB = -58;
const LOUD_DB = -16;
/** Edges of the bands, in Hz: voice pitch, first formant, second formant, the bright rest. */
const EDGES = [80, 300, 900, 2200, 5000];
export const BANDS = EDGES.length - 1;

/**
 * @param {Float32Array} samples -1..1
 * @returns {number} 0..1
 */
export function loudness(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  if (sum === 0) return 0;
  const db = 10 * Math.log10(sum / samples.length);
  return Math.min(1, Math.max(0, (db - QUIET_DB) / (LOUD_DB - QUIET_DB)));
}

/**
 * @param {Uint8Array} spectrum 0..255, from 0 Hz to half the rate
 * @param {number} rate in Hz
 * @returns {number[]} mean of each band, 0..1
 */
export function bands(spectrum, rate) {
  const hertz = rate / 2 / spectrum.length;
  return EDGES.slice(1).map((to, band) => {
    const first = Math.floor(/** @type {number} */ (EDGES[band]) / hertz);
    const slice = spectrum.subarray(first, Math.max(first + 1, Math.ceil(to / hertz)));
    return slice.reduce((sum, value) => sum + value, 0) / slice.length / 255;
  });
}

/** @typedef {{level: number, bands: number[]}} Reading all 0..1 */

/** @type {Reading} */
export const SILENCE = { level: 0, bands: new Array(BANDS).fill(0) };

/** Listens to one stream; nothing it does can be heard. */
export class Meter {
  #analyser;
  #source;
  #samples;
  #spectrum;

  /**
   * @param {AudioContext} context
   * @param {MediaStream} stream a remote one must also play in an <audio> element, else it is silent here
   */
  constructor(context, stream) {
    this.#analyser = context.createAnalyser();
    this.#analyser.fftSize = 1024;
    this.#analyser.smoothingTimeConstant = 0.6;
    this.#samples = new Float32Array(this.#analyser.fftSize);
    this.#spectrum = new Uint8Array(this.#analyser.frequencyBinCount);
    // Kept, because some browsers collect a source that nothing refers to.
    this.#source = context.createMediaStreamSource(stream);
    this.#source.connect(this.#analyser);
  }

  /** @returns {Reading} */
  read() {
    this.#analyser.getFloatTimeDomainData(this.#samples);
    this.#analyser.getByteFrequencyData(this.#spectrum);
    return { level: loudness(this.#samples), bands: bands(this.#spectrum, this.#analyser.context.sampleRate) };
  }

  close() {
    this.#source.disconnect();
  }
}
