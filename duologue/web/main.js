/** Wires the page: what the caller does, what the call reports, what is shown. */

import { Call } from "./call.js";
import { Captions } from "./captions.js";
import { CaptionsView } from "./captions_view.js";
import { fillPicker, microphoneFault, missingSupport, openMicrophone, rememberMicrophone, rememberedMicrophone }
  from "./devices.js";
import { Events, typedMessages } from "./events.js";
import { Latencies } from "./latency.js";
import { showLatencies } from "./latency_view.js";
import { Meter, SILENCE } from "./levels.js";
import { duration } from "./status.js";
import { Timeline } from "./timeline.js";
import { TimelineView } from "./timeline_view.js";
import { show, ui } from "./view.js";
import { Visualiser } from "./visualiser.js";
import { ScreenLock } from "./wakelock.js";

const ENDPOINT = new URL("v1/realtime/calls", document.baseURI);

/**
 * What one attempt to call holds, and has to give back.
 * @typedef {object} Attempt
 * @property {AudioContext} context
 * @property {MediaStreamTrack | null} microphone
 * @property {Call | null} call
 * @property {Meter | null} caller
 * @property {Meter | null} agent
 * @property {number} since when the call went live, on the page's clock in ms
 */

/** @type {Attempt | null} */
let attempt = null;
let wantedMicrophone = rememberedMicrophone();
/** @type {import("./status.js").Situation & {down: Set<string>}} */
const situation = {
  phase: "idle", agent: "listening", muted: false, trouble: null, queue: null, down: new Set(), note: "",
};

const events = new Events();
const captions = new Captions();
const captionsView = new CaptionsView(ui.captions);
const latencies = new Latencies();
const timeline = new Timeline();
const timelineView = new TimelineView(ui.timeline, timeline);
const screenLock = new ScreenLock();
const visualiser = new Visualiser(ui.visualiser, {
  agent: () => attempt?.agent?.read() ?? SILENCE,
  caller: () => (situation.phase === "live" && attempt?.caller?.read()) || SILENCE,
});

/** @param {Partial<typeof situation>} change */
function become(change) {
  Object.assign(situation, change);
  show(situation);
  visualiser.show(situation.phase === "live" ? situation.agent : situation.phase, situation.muted);
}

// --- the call -------------------------------------------------------------------------------------------------

async function begin() {
  const lacking = lackingSupport();
  if (lacking !== null) return end(lacking);
  // Made in the click itself: later, browsers would keep it suspended.
  /** @type {Attempt} */
  const mine = { context: new AudioContext(), microphone: null, call: null, caller: null, agent: null, since: 0 };
  attempt = mine;
  become({ phase: "asking", trouble: null, muted: false });
  try {
    const microphone = await openMicrophone(wantedMicrophone);
    if (attempt !== mine) return microphone.stop();
    useMicrophone(mine, microphone);
  } catch (error) {
    if (attempt === mine) end(microphoneFault(error));
    return;
  }
  refreshPicker();
  become({ phase: "connecting" });
  mine.call = new Call(ENDPOINT, /** @type {MediaStreamTrack} */ (mine.microphone), {
    onQueue: (queue) => become({ phase: "queued", queue }),
    onAccepted: () => become({ phase: "connecting", queue: null }),
    onOpen: () => live(mine),
    onStream: (stream) => hear(mine, stream),
    onMessage: (text) => events.receive(text),
    onFault: (fault, detail) => end(fault, detail),
  });
  mine.call.start();
}

/** @param {Attempt} mine */
function live(mine) {
  captions.clear();
  latencies.clear();
  timeline.clear();
  mine.since = performance.now();
  situation.down.clear();
  become({ phase: "live", agent: "listening", note: "" });
  captionsView.show(captions.shown);
  showLatencies(ui.latency, latencies);
  timelineView.start();
  screenLock.hold();
  tick(mine);
}

/**
 * Ends what there is of a call and gives everything back.
 * @param {import("./messages.js").Fault} [fault] why, if it was not the caller's wish
 * @param {string} [detail] the server's own sentence
 */
function end(fault, detail = "") {
  const mine = attempt;
  attempt = null;
  mine?.call?.hangUp();
  mine?.microphone?.stop();
  mine?.context.close();
  ui.voice.srcObject = null;
  ui.hear.hidden = true;
  captions.close();
  captionsView.show(captions.shown);
  timelineView.stop();
  screenLock.release();
  const trouble = fault === undefined ? null : { fault, detail, userAgent: navigator.userAgent };
  const talked = "conversation" in document.documentElement.dataset;
  become({ phase: trouble !== null || talked ? "ended" : "idle", trouble, queue: null, muted: false });
}

/**
 * The agent's voice plays in an element, never through Web Audio: only there browsers cancel its echo.
 * @param {Attempt} mine
 * @param {MediaStream} stream
 */
function hear(mine, stream) {
  ui.voice.srcObject = stream;
  mine.agent = new Meter(mine.context, stream);
  playVoice();
}

async function playVoice() {
  try {
    await ui.voice.play();
    ui.hear.hidden = true;
  } catch (error) {
    // Anything else is a call that ended meanwhile.
    ui.hear.hidden = !(error instanceof DOMException && error.name === "NotAllowedError");
  }
}

// --- the microphone -------------------------------------------------------------------------------------------

/**
 * @param {Attempt} mine
 * @param {MediaStreamTrack} microphone
 */
function useMicrophone(mine, microphone) {
  mine.microphone?.stop();
  mine.caller?.close();
  mine.microphone = microphone;
  mine.caller = new Meter(mine.context, new MediaStream([microphone]));
  microphone.enabled = !situation.muted;
  // Unplugged (not stopped by us): go on with whatever the system offers now.
  microphone.onended = () => changeMicrophone("");
}

/** @param {string} deviceId "" for the system's choice */
async function changeMicrophone(deviceId) {
  const mine = attempt;
  if (mine === null || mine.microphone === null) return;
  try {
    const microphone = await openMicrophone(deviceId);
    if (attempt !== mine) return microphone.stop();
    useMicrophone(mine, microphone);
    await mine.call?.useMicrophone(microphone);
  } catch (error) {
    if (attempt === mine) end(microphoneFault(error));
  }
}

function refreshPicker() {
  fillPicker(ui.picker, attempt?.microphone?.getSettings().deviceId ?? wantedMicrophone);
}

function toggleMute() {
  if (situation.phase !== "live" || attempt?.microphone == null) return;
  attempt.microphone.enabled = situation.muted;
  become({ muted: !situation.muted });
}

// --- what the server says -------------------------------------------------------------------------------------

captions.follow(events);
for (const type of /** @type {const} */ ([
  "duologue.transcript.partial", "conversation.item.input_audio_transcription.completed",
  "conversation.item.added", "response.output_audio_transcript.delta",
  "response.output_audio_transcript.done", "duologue.reply.heard", "response.done",
])) {
  events.on(type, () => captionsView.show(captions.shown));
}
events.on("session.created", ({ session }) => {
  ui.model.textContent = session.model;
});
events.on("duologue.state", (change) => {
  timeline.changed(change, performance.now());
  become({ agent: change.state, note: "" });
});
events.on("duologue.decision", (decision) => timeline.decided(decision, performance.now()));
events.on("duologue.reply.heard", () => timeline.interrupted(performance.now()));
events.on("duologue.latency", ({ kind, ms }) => {
  latencies.add(kind, ms);
  showLatencies(ui.latency, latencies);
});
events.on("duologue.health", ({ stage, up }) => {
  if (up) situation.down.delete(stage);
  else situation.down.add(stage);
  become({});
});
events.on("error", ({ error }) => become({ note: error.message }));

// --- what the caller does -------------------------------------------------------------------------------------

ui.call.addEventListener("click", (event) => {
  // The second half of a double click would hang up the call that the first half made.
  if (event.detail > 1) return;
  if (attempt === null) begin();
  else end();
});
ui.mute.addEventListener("click", toggleMute);
ui.hear.addEventListener("click", () => {
  attempt?.context.resume();
  playVoice();
});
ui.picker.addEventListener("change", () => {
  wantedMicrophone = ui.picker.value;
  rememberMicrophone(wantedMicrophone);
  changeMicrophone(wantedMicrophone);
});
ui.composer.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = ui.typed.value.trim();
  if (text === "") return;
  for (const message of typedMessages(text)) attempt?.call?.send(message);
  ui.typed.value = "";
});
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && attempt !== null) {
    end();
    ui.call.focus();
  }
  const writing = event.target === ui.typed || event.target === ui.picker;
  if (event.key.toLowerCase() === "m" && !writing) toggleMute();
});
addEventListener("pagehide", () => {
  if (attempt !== null) end();
});

/** @param {Attempt} mine */
function tick(mine) {
  if (attempt !== mine) return;
  ui.clock.textContent = duration((performance.now() - mine.since) / 1000);
  setTimeout(() => tick(mine), 1000);
}

function lackingSupport() {
  return missingSupport({
    secure: isSecureContext,
    microphone: navigator.mediaDevices !== undefined,
    webrtc: "RTCPeerConnection" in window,
  });
}

const lacking = lackingSupport();
if (lacking !== null) {
  end(lacking);
  ui.call.disabled = true;
} else {
  refreshPicker();
  navigator.mediaDevices.addEventListener("devicechange", refreshPicker);
}
