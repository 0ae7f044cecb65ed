import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { CAPTION_LIMIT, Captions, cut } from "../../duologue/web/captions.js";
import { Events } from "../../duologue/web/events.js";

let captions;
let say;

beforeEach(() => {
  const events = new Events();
  captions = new Captions();
  captions.follow(events);
  say = (type, fields) => events.receive(JSON.stringify({ type, ...fields }));
});

const TRANSCRIBED = "conversation.item.input_audio_transcription.completed";

function replies(item, text) {
  say("response.output_item.added", { response_id: `of ${item}`, item: { id: item, type: "message" } });
  for (const delta of text.split(/(?<= )/)) {
    say("response.output_audio_transcript.delta", { response_id: `of ${item}`, item_id: item, delta });
  }
}

test("a partial replaces the one before it, and the final words replace both", () => {
  say("duologue.transcript.partial", { item_id: "a", text: "how many" });
  say("duologue.transcript.partial", { item_id: "a", text: "how any ships" });
  assert.deepEqual(captions.shown.map(({ text, final }) => ({ text, final })),
    [{ text: "how any ships", final: false }]);
  say(TRANSCRIBED, { item_id: "a", transcript: "How many ships?" });
  assert.equal(captions.shown[0].text, "How many ships?");
  assert.equal(captions.shown[0].final, true);
});

test("a late partial does not take final words back", () => {
  say(TRANSCRIBED, { item_id: "a", transcript: "Yes." });
  say("duologue.transcript.partial", { item_id: "a", text: "ye" });
  assert.equal(captions.shown[0].text, "Yes.");
});

test("captions stand in the order in which speech began, not in which words came", () => {
  say("input_audio_buffer.speech_started", { item_id: "a" });
  replies("b", "I think so.");
  say(TRANSCRIBED, { item_id: "a", transcript: "Is it?" });
  assert.deepEqual(captions.shown.map((caption) => caption.who), ["caller", "agent"]);
});

test("noise that became no words is not shown", () => {
  say("input_audio_buffer.speech_started", { item_id: "a" });
  say(TRANSCRIBED, { item_id: "a", transcript: "" });
  assert.deepEqual(captions.shown, []);
});

test("a reply grows by its deltas and is final when its response is done", () => {
  replies("b", "Once upon a time");
  assert.equal(captions.shown[0].text, "Once upon a time");
  assert.equal(captions.shown[0].final, false);
  say("response.done", { response: { id: "of b", status: "completed" } });
  assert.equal(captions.shown[0].final, true);
  assert.equal(captions.shown[0].failed, false);
});

for (const order of ["before", "after"]) {
  test(`an interrupted reply keeps all its words when the heard ones come ${order} its end`, () => {
    replies("b", "one two three");
    const heard = () => say("duologue.reply.heard", { item_id: "b", text: "one two three", heard_text: "one two " });
    if (order === "before") heard();
    say("response.output_audio_transcript.done", { response_id: "of b", item_id: "b", transcript: "one two " });
    say("response.done", { response: { id: "of b", status: "cancelled" } });
    if (order === "after") heard();
    assert.deepEqual(cut(captions.shown[0]), { heard: "one two", unheard: "three" });
  });
}

test("a reply that was done being said can still be cut while it plays", () => {
  replies("b", "one two three");
  say("response.done", { response: { id: "of b", status: "completed" } });
  say("duologue.reply.heard", { item_id: "b", text: "one two three", heard_text: "one" });
  assert.deepEqual(cut(captions.shown[0]), { heard: "one", unheard: "two three" });
});

test("a reply of which nothing was heard is wholly unheard", () => {
  replies("b", "one two");
  say("duologue.reply.heard", { item_id: "b", text: "one two", heard_text: "" });
  assert.deepEqual(cut(captions.shown[0]), { heard: "", unheard: "one two" });
});

test("a delta that comes after the cut does not grow the reply", () => {
  replies("b", "one");
  say("duologue.reply.heard", { item_id: "b", text: "one", heard_text: "" });
  say("response.output_audio_transcript.delta", { response_id: "of b", item_id: "b", delta: " two" });
  assert.equal(captions.shown[0].text, "one");
});

test("a failed reply says so", () => {
  replies("b", "one");
  say("response.done", { response: { id: "of b", status: "failed" } });
  assert.equal(captions.shown[0].failed, true);
});

test("typed words are a caption, spoken items become one only by their transcript", () => {
  const item = (id, part) => ({ item: { id, type: "message", role: "user", content: [part] } });
  say("conversation.item.added", item("a", { type: "input_text", text: "What is six times seven?" }));
  say("conversation.item.added", item("b", { type: "input_audio", transcript: "spoken" }));
  assert.deepEqual(captions.shown.map(({ id, text, final }) => ({ id, text, final })),
    [{ id: "a", text: "What is six times seven?", final: true }]);
});

test("when the call ends, nothing is left unfinished", () => {
  say("duologue.transcript.partial", { item_id: "a", text: "and wh" });
  captions.close();
  assert.equal(captions.shown[0].final, true);
});

test("a long call keeps the newest captions only", () => {
  for (let n = 0; n < CAPTION_LIMIT + 5; n += 1) say(TRANSCRIBED, { item_id: `i${n}`, transcript: `${n}` });
  assert.equal(captions.shown.length, CAPTION_LIMIT);
  assert.equal(captions.shown[0].text, "5");
});
