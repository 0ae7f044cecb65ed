import assert from "node:assert/strict";
import { test } from "node:test";

import { BANDS, bands, loudness } from "../../duologue/web/levels.js";

const sine = (peak) => Float32Array.from({ length: 960 }, (_, n) => peak * Math.sin((2 * Math.PI * n) / 48));

test("silence is nought and full scale is one", () => {
  assert.equal(loudness(new Float32Array(960)), 0);
  assert.equal(loudness(sine(1)), 1);
});

test("halving the amplitude takes 6.02 dB of the 42 dB range", () => {
  assert.ok(Math.abs(loudness(sine(0.1)) - loudness(sine(0.05)) - 6.0206 / 42) < 1e-4);
});

test("a tone lights the band that holds it", () => {
  // 512 bins of 46.875 Hz; 440 Hz lies between 300 and 900 Hz, the second band.
  const spectrum = new Uint8Array(512);
  spectrum[Math.round(440 / 46.875)] = 255;
  const lit = bands(spectrum, 48_000);
  assert.equal(lit.length, BANDS);
  assert.deepEqual(lit.map((band) => band > 0), [false, true, false, false]);
});

test("a spectrum that is full everywhere fills every band", () => {
  assert.deepEqual(bands(new Uint8Array(512).fill(255), 44_100), [1, 1, 1, 1]);
});
