import assert from "node:assert/strict";
import { test } from "node:test";

import { readAnswer, waitInWords } from "../../duologue/web/signalling.js";

const refusal = (code, message = "No.") => JSON.stringify({ error: { type: "server_error", code, message } });

test("a call that is taken has an answer and a place", () => {
  assert.deepEqual(readAnswer(201, "v=0", "/v1/realtime/calls/rtc_1"),
    { answer: "v=0", location: "/v1/realtime/calls/rtc_1" });
});

test("a queue is not a refusal", () => {
  const body = JSON.stringify({ error: { code: "capacity", message: "Busy." },
    queue: { ticket: "t1", position: 2, eta_s: 12.5 } });
  assert.deepEqual(readAnswer(503, body, null), { ticket: "t1", position: 2, eta_s: 12.5 });
});

test("a queue whose speed is not known has no wait", () => {
  const body = JSON.stringify({ queue: { ticket: "t1", position: 1, eta_s: null } });
  assert.deepEqual(readAnswer(503, body, null), { ticket: "t1", position: 1, eta_s: null });
});

for (const [code, fault] of [["queue_full", "full"], ["draining", "draining"], ["stage_down", "down"],
  ["invalid_offer", "refused"], ["toString", "refused"]]) {
  test(`the code ${code} is the fault ${fault}, with the server's sentence`, () => {
    assert.deepEqual(readAnswer(503, refusal(code), null), { fault, detail: "No." });
  });
}

for (const [what, body] of [["HTML", "<h1>Bad gateway</h1>"], ["null", "null"], ["an error without words", '{"error":{}}']]) {
  test(`${what} is a refusal that names the status`, () => {
    assert.deepEqual(readAnswer(502, body, null),
      { fault: "refused", detail: "The server answered with status 502." });
  });
}

for (const [seconds, words] of [[null, ""], [3, "a few seconds"], [12, "about 10 seconds"],
  [42, "about 40 seconds"], [58, "about a minute"], [85, "about a minute"], [200, "about 3 minutes"]]) {
  test(`a wait of ${seconds} s is "${words}"`, () => assert.equal(waitInWords(seconds), words));
}
