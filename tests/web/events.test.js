import assert from "node:assert/strict";
import { test } from "node:test";

import { Events, parseEvent, typedMessages } from "../../duologue/web/events.js";

test("an event with all its fields is read, with fields the page does not know left in peace", () => {
  const event = parseEvent('{"type":"duologue.latency","event_id":"e1","kind":"stop","ms":140}');
  assert.equal(event.kind, "stop");
  assert.equal(event.ms, 140);
});

for (const [what, text] of Object.entries({
  "text that is no JSON": "{",
  "JSON that is no object": "[1]",
  "null": "null",
  "an object without type": '{"kind":"stop"}',
  "a type the page has no use for": '{"type":"rate_limits.updated"}',
  "a type that is a property of every object": '{"type":"constructor"}',
  "a field that is missing": '{"type":"duologue.latency","kind":"stop"}',
  "a field of another type": '{"type":"duologue.latency","kind":"stop","ms":"140"}',
  "a word that is not one of those allowed": '{"type":"duologue.state","state":"asleep","at_ms":0}',
  "an inner object that is null": '{"type":"response.done","response":null}',
})) {
  test(`${what} is no event`, () => assert.equal(parseEvent(text), null));
}

test("an event reaches all who asked for its type, in order, and nobody else", () => {
  const events = new Events();
  const heard = [];
  events.on("duologue.health", ({ stage }) => heard.push(`first ${stage}`));
  events.on("duologue.health", ({ stage }) => heard.push(`second ${stage}`));
  events.on("error", () => heard.push("error"));
  events.receive('{"type":"duologue.health","stage":"talker","up":false}');
  assert.deepEqual(heard, ["first talker", "second talker"]);
});

test("typed text becomes a user's item and a wish for a reply", () => {
  assert.deepEqual(typedMessages("Hello"), [
    { type: "conversation.item.create",
      item: { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] } },
    { type: "response.create" },
  ]);
});
