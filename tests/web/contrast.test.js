import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../../duologue/web/style.css", import.meta.url), "utf8");

/** The custom properties that are plain colours, in the order light, dark. */
const themes = [...css.matchAll(/:root \{([^}]*--paper[^}]*)\}/g)].map(([, body]) =>
  Object.fromEntries([...body.matchAll(/(--[\w-]+): #([0-9a-f]{6})/g)].map(([, name, hex]) => [name, hex])));

/** Relative luminance, WCAG 2.2. */
function luminance(hex) {
  const [r, g, b] = [0, 2, 4].map((at) => {
    const channel = parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

test("black on white is 21 to 1", () => assert.equal(contrast("000000", "ffffff").toFixed(3), "21.000"));

const TEXT = [["--ink", "--paper"], ["--ink-soft", "--paper"], ["--ink", "--raised"], ["--ink-soft", "--raised"],
  ["--accent", "--paper"], ["--on-accent", "--accent"], ["--on-accent", "--accent-strong"]];
const SHAPES = [["--edge", "--paper"], ["--edge", "--raised"], ["--accent", "--paper"]];

for (const [index, name] of ["light", "dark"].entries()) {
  for (const [pairs, least] of [[TEXT, 4.5], [SHAPES, 3]]) {
    for (const [front, back] of pairs) {
      test(`${name}: ${front} on ${back} has a contrast of at least ${least} (WCAG AA)`, () => {
        assert.ok(contrast(themes[index][front], themes[index][back]) >= least);
      });
    }
  }
}
