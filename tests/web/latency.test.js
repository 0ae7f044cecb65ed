import assert from "node:assert/strict";
import { test } from "node:test";

import { LATENCY_LIMIT, Latencies, quantile } from "../../duologue/web/latency.js";

// Values of the nearest-rank examples in Wikipedia, "Percentile".
for (const [q, expected] of [[0.05, 15], [0.3, 20], [0.4, 20], [0.5, 35], [1, 50]]) {
  test(`the ${q} quantile of five values is ${expected} by nearest rank`, () => {
    assert.equal(quantile([40, 15, 50, 20, 35], q), expected);
  });
}

test("one value is every quantile", () => {
  assert.equal(quantile([7], 0.5), 7);
  assert.equal(quantile([7], 0.95), 7);
});

test("numbers are sorted as numbers", () => assert.equal(quantile([1000, 90, 200], 1), 1000));

test("kinds are counted apart, the last is the newest and not the largest", () => {
  const latencies = new Latencies();
  for (const ms of [300, 900, 500]) latencies.add("voice_to_voice", ms);
  latencies.add("stop", 120);
  assert.deepEqual(latencies.summary("voice_to_voice"), { last: 500, p50: 500, p95: 900, count: 3 });
  assert.deepEqual(latencies.summary("stop"), { last: 120, p50: 120, p95: 120, count: 1 });
});

test("there is no summary before the first measurement and after a new call", () => {
  const latencies = new Latencies();
  assert.equal(latencies.summary("stop"), null);
  latencies.add("stop", 1);
  latencies.clear();
  assert.equal(latencies.summary("stop"), null);
});

test("old measurements make room for new ones", () => {
  const latencies = new Latencies();
  for (let ms = 0; ms < LATENCY_LIMIT + 10; ms += 1) latencies.add("stop", ms);
  assert.equal(latencies.summary("stop").count, LATENCY_LIMIT);
  assert.equal(latencies.summary("stop").last, LATENCY_LIMIT + 9);
});
