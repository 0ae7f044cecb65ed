import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { RUN_ON_MS, Timeline, WINDOW_MS, describe, intersect, total } from "../../duologue/web/timeline.js";

const UNIT = 200;
let timeline;
let at;

beforeEach(() => {
  timeline = new Timeline();
  at = 0;
});

/** The page's clock runs with media time here. */
function units(count, { speech = 0, choice = "listen" } = {}) {
  for (let n = 0; n < count; n += 1) {
    at += UNIT;
    timeline.decided({ type: "duologue.decision", choice, speech, at_ms: at, unit_ms: UNIT }, at);
  }
}

function state(name) {
  timeline.changed({ type: "duologue.state", state: name, at_ms: at }, at);
}

test("units that follow each other are one bar", () => {
  units(2);
  units(3, { speech: 0.9 });
  units(1);
  units(1, { speech: 0.5 });
  assert.deepEqual(timeline.view(at).caller, [{ from: 400, to: 1000 }, { from: 1200, to: 1400 }]);
});

test("what the model chose and what could be heard are told apart", () => {
  units(1, { choice: "listen" });
  units(2, { choice: "speak" });
  state("speaking");
  units(2, { choice: "speak" });
  units(1);
  const view = timeline.view(at);
  assert.deepEqual(view.speak, [{ from: 200, to: 1000 }]);
  assert.deepEqual(view.agent, [{ from: 600, to: 1200 }]);
});

test("a ducked reply is heard, a paused one is not", () => {
  state("speaking");
  units(2);
  state("ducked");
  units(1);
  state("paused");
  units(2);
  state("speaking");
  units(1);
  state("listening");
  assert.deepEqual(timeline.view(at).agent, [{ from: 0, to: 600 }, { from: 1000, to: 1200 }]);
});

test("overlap is where both could be heard", () => {
  state("speaking");
  units(3);
  units(2, { speech: 1 });
  state("listening");
  units(2, { speech: 1 });
  assert.deepEqual(timeline.view(at).overlap, [{ from: 600, to: 1000 }]);
});

test("what is older than the window is forgotten", () => {
  units(5, { speech: 1 });
  timeline.interrupted(at);
  units(WINDOW_MS / UNIT - 2);
  assert.deepEqual(timeline.view(at).caller, [{ from: 600, to: 1000 }]);
  assert.deepEqual(timeline.view(at).cuts, [1000]);
  units(3);
  assert.deepEqual(timeline.view(at).caller, []);
  assert.deepEqual(timeline.view(at).cuts, []);
});

test("a reply longer than the window fills it and no more", () => {
  state("speaking");
  units(2 * WINDOW_MS / UNIT);
  assert.equal(total(timeline.view(at).agent), WINDOW_MS);
});

test("between two events the clock runs on, but not for ever", () => {
  units(1);
  assert.equal(timeline.now(at + 50), UNIT + 50);
  assert.equal(timeline.now(at + 60_000), UNIT + RUN_ON_MS);
});

test("before the first event the clock stands at nought", () => {
  assert.equal(timeline.now(1_000_000), 0);
});

test("the clock never goes back", () => {
  timeline.changed({ type: "duologue.state", state: "thinking", at_ms: 500 }, 0);
  timeline.decided({ type: "duologue.decision", choice: "listen", speech: 0, at_ms: 400, unit_ms: UNIT }, 10);
  assert.equal(timeline.now(10), 510);
});

test("a new call starts with an empty picture", () => {
  state("speaking");
  units(3, { speech: 1, choice: "speak" });
  timeline.interrupted(at);
  timeline.clear();
  assert.deepEqual(timeline.view(0), { now: 0, caller: [], agent: [], overlap: [], speak: [], cuts: [] });
});

test("the picture in words gives seconds and interruptions", () => {
  state("speaking");
  units(10);
  units(3, { speech: 1 });
  timeline.interrupted(at);
  assert.equal(describe(timeline.view(at)),
    "Last minute: you spoke 0.6 seconds, the agent 2.6 seconds, both at once 0.6 seconds; 1 interruption.");
});

test("spans that only touch do not overlap", () => {
  assert.deepEqual(intersect([{ from: 0, to: 10 }], [{ from: 10, to: 20 }]), []);
});
