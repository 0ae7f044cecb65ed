/** The microphone: which there are, which one the caller wants, and what went wrong with it. */

const REMEMBERED = "duologue.microphone";

/** @typedef {"denied" | "missing" | "busy" | "insecure" | "unsupported"} MicrophoneFault */

/**
 * @param {unknown} error what getUserMedia threw
 * @returns {MicrophoneFault}
 */
export function microphoneFault(error) {
  const name = typeof error === "object" && error !== null && "name" in error ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return "denied";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "missing";
  return "busy";
}

/**
 * @param {{secure: boolean, microphone: boolean, webrtc: boolean}} has what the browser offers this page
 * @returns {MicrophoneFault | null} what stands in the way of any call
 */
export function missingSupport(has) {
  if (!has.secure) return "insecure";
  return has.microphone && has.webrtc ? null : "unsupported";
}

/** @type {MediaTrackConstraints} */
const SPEECH = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

/**
 * The remembered choice; none where storage is off (private windows).
 * @returns {string}
 */
export function rememberedMicrophone() {
  try {
    return localStorage.getItem(REMEMBERED) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} deviceId */
export function rememberMicrophone(deviceId) {
  try {
    if (deviceId === "") localStorage.removeItem(REMEMBERED);
    else localStorage.setItem(REMEMBERED, deviceId);
  } catch {
    // Storage is off: the choice holds until the page is closed.
  }
}

/**
 * @param {string} deviceId "" for the system's choice
 * @returns {Promise<MediaStreamTrack>}
 * @throws {DOMException} see {@link microphoneFault}
 */
export async function openMicrophone(deviceId) {
  if (deviceId === "") return open(SPEECH);
  try {
    // Not `ideal`: Chromium then gives the system's default although the wanted one is there.
    return await open({ ...SPEECH, deviceId: { exact: deviceId } });
  } catch (error) {
    // A headset that was left at home must not keep a person from calling.
    if (microphoneFault(error) === "missing") return open(SPEECH);
    throw error;
  }
}

/** @param {MediaTrackConstraints} wanted */
async function open(wanted) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
  const track = stream.getAudioTracks()[0];
  if (track === undefined) throw new DOMException("no audio track", "NotFoundError");
  return track;
}

/**
 * Fills the picker. Before the microphone was ever allowed, browsers give no names, and there is one entry.
 * @param {HTMLSelectElement} picker
 * @param {string} chosen the device's id; shown as the default where there is no such device
 */
export async function fillPicker(picker, chosen) {
  const devices = await navigator.mediaDevices.enumerateDevices();
  const named = devices.filter((device) => device.kind === "audioinput" && device.label !== ""
    && device.deviceId !== "default" && device.deviceId !== "communications");
  const options = [new Option("Default microphone", "")];
  for (const device of named) options.push(new Option(device.label, device.deviceId));
  picker.replaceChildren(...options);
  picker.value = named.some((device) => device.deviceId === chosen) ? chosen : "";
}
