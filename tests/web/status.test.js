import assert from "node:assert/strict";
import { test } from "node:test";

import { microphoneFault, missingSupport } from "../../duologue/web/devices.js";
import { microphoneHelp } from "../../duologue/web/messages.js";
import { duration, status } from "../../duologue/web/status.js";

const LIVE = {
  phase: "live", agent: "speaking", muted: false, trouble: null, queue: null, down: new Set(), note: "",
};
const FAULTS = ["denied", "missing", "busy", "insecure", "unsupported", "full", "draining", "down", "refused",
  "unreachable", "blocked", "lost", "ended"];

test("while live the state is the agent's, and so is the title", () => {
  for (const agent of ["listening", "thinking", "speaking", "ducked", "paused"]) {
    const { state, label, title } = status({ ...LIVE, agent });
    assert.equal(state, agent);
    assert.equal(title, `${label} · Duologue`);
  }
});

test("the main button calls, cancels or hangs up, by phase", () => {
  const actions = ["idle", "asking", "connecting", "queued", "live", "ended"]
    .map((phase) => status({ ...LIVE, phase }).action);
  assert.deepEqual(actions, ["call", "cancel", "cancel", "cancel", "hang-up", "call"]);
});

test("a caller who is muted is told so, and by the title in another tab too", () => {
  const { hint, title } = status({ ...LIVE, muted: true });
  assert.equal(hint, "You are muted.");
  assert.equal(title, "Muted · Duologue");
});

test("a stage that restarts is named, before anything else", () => {
  const said = (down) => status({ ...LIVE, muted: true, note: "?", down: new Set(down) }).hint;
  assert.equal(said(["talker"]), "The talker is restarting. The call goes on.");
  assert.equal(said(["talker", "codec"]), "The talker and the codec are restarting. The call goes on.");
});

test("every fault has words of its own", () => {
  const said = FAULTS.map((fault) =>
    status({ ...LIVE, phase: "ended", trouble: { fault, detail: "Because.", userAgent: "" } }));
  for (const { label, hint } of said) assert.ok(label.length > 0 && hint.length > 0);
  assert.equal(new Set(said.map(({ label, hint }) => label + hint)).size, FAULTS.length);
});

test("a refusal shows the server's own sentence", () => {
  const trouble = { fault: "refused", detail: "Unknown model.", userAgent: "" };
  assert.equal(status({ ...LIVE, phase: "ended", trouble }).hint, "Unknown model.");
});

test("a waiting caller learns the place and the wait", () => {
  const { hint, actionLabel } = status({ ...LIVE, phase: "queued", queue: { ticket: "t", position: 3, eta_s: 42 } });
  assert.match(hint, /number 3 in the queue.*about 40 seconds/);
  assert.equal(actionLabel, "Leave the queue");
  assert.match(status({ ...LIVE, phase: "queued", queue: { ticket: "t", position: 1, eta_s: null } }).hint,
    /^You are next in the queue\. The call/);
});

for (const [seconds, clock] of [[0, "0:00"], [9.9, "0:09"], [60, "1:00"], [754, "12:34"]]) {
  test(`${seconds} s is ${clock}`, () => assert.equal(duration(seconds), clock));
}

for (const [name, fault] of [["NotAllowedError", "denied"], ["SecurityError", "denied"],
  ["NotFoundError", "missing"], ["OverconstrainedError", "missing"], ["NotReadableError", "busy"], ["AbortError", "busy"]]) {
  test(`${name} means that the microphone is ${fault}`, () => {
    assert.equal(microphoneFault(new DOMException("", name)), fault);
  });
}

test("what is missing is named, an insecure address first", () => {
  const all = { secure: true, microphone: true, webrtc: true };
  assert.equal(missingSupport(all), null);
  assert.equal(missingSupport({ ...all, webrtc: false }), "unsupported");
  assert.equal(missingSupport({ secure: false, microphone: false, webrtc: true }), "insecure");
});

test("help for a blocked microphone differs by browser", () => {
  const agents = ["Mozilla/5.0 (iPhone) Safari/605", "Gecko Firefox/140.0", "Chrome/140.0 Safari/537", "other"];
  assert.equal(new Set(agents.map(microphoneHelp)).size, agents.length);
});
