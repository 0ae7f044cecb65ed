// Injected before any script of the page: records what the page's microphone hears and what its peer
// connection plays as two tracks on one AudioContext clock, and its data channel's messages on the same clock.
(() => {
  const RATE = 48000;
  const blocks = [];
  const messages = [];
  const sent = [];
  const states = [];
  let context = null;
  let node = null;
  let starting = null;

  const WORKLET = `
    registerProcessor("two-track-recorder", class extends AudioWorkletProcessor {
      constructor() {
        super();
        this.size = 4800;
        this.fresh();
      }
      fresh() {
        this.block = new Int16Array(2 * this.size);
        this.fill = 0;
        this.first = -1;
      }
      process(inputs) {
        if (this.first < 0) this.first = currentFrame;
        for (let i = 0; i < 128; i += 1) {
          for (let track = 0; track < 2; track += 1) {
            const channel = inputs[track][0];
            const sample = channel ? Math.max(-1, Math.min(1, channel[i])) : 0;
            this.block[2 * this.fill + track] = Math.round(32767 * sample);
          }
          this.fill += 1;
          if (this.fill === this.size) {
            this.port.postMessage({ first: this.first, block: this.block }, [this.block.buffer]);
            this.fresh();
            this.first = currentFrame + i + 1;
          }
        }
        return true;
      }
    });`;

  async function start() {
    context = new AudioContext({ sampleRate: RATE });
    const url = URL.createObjectURL(new Blob([WORKLET], { type: "text/javascript" }));
    await context.audioWorklet.addModule(url);
    node = new AudioWorkletNode(context, "two-track-recorder", {
      numberOfInputs: 2, numberOfOutputs: 1, channelCount: 1, channelCountMode: "explicit",
    });
    node.port.onmessage = ({ data }) => blocks.push(data);
    node.connect(context.destination); // it is silent, but only a connected node is certain to be run
    await context.resume();
  }
  const started = () => (starting ??= start());
  const now = () => (context ? Math.round(context.currentTime * RATE) : 0);

  function listen(track, input) {
    void started().then(() => context.createMediaStreamSource(new MediaStream([track])).connect(node, 0, input));
  }

  function watch(channel) {
    channel.addEventListener("open", () => states.push({ at: now(), state: `channel ${channel.label}` }));
    channel.addEventListener("message", ({ data }) => typeof data === "string" && messages.push({ at: now(), data }));
    const send = channel.send.bind(channel);
    channel.send = (data) => {
      if (typeof data === "string") sent.push({ at: now(), data });
      send(data);
    };
  }

  const capture = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    await started(); // before the microphone runs, so that its first sample is recorded
    const stream = await capture(constraints);
    for (const track of stream.getAudioTracks()) listen(track, 0);
    return stream;
  };

  const Native = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Native {
    constructor(...args) {
      super(...args);
      this.addEventListener("track", (event) => event.track.kind === "audio" && listen(event.track, 1));
      this.addEventListener("datachannel", (event) => watch(event.channel));
      this.addEventListener("connectionstatechange", () => {
        states.push({ at: now(), state: this.connectionState });
      });
    }
    createDataChannel(...args) {
      const channel = super.createDataChannel(...args);
      watch(channel);
      return channel;
    }
  };

  function base64(bytes) {
    let text = "";
    for (let i = 0; i < bytes.length; i += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    }
    return btoa(text);
  }

  // For pages whose messages come by another way than a data channel of their own.
  window.recordMessage = (data) => messages.push({ at: now(), data });

  // Hands over what has been recorded since the last take.
  window.takeRecording = () => ({
    blocks: blocks.splice(0).map(({ first, block }) => ({ first, pcm: base64(new Uint8Array(block.buffer)) })),
    messages: messages.splice(0),
    sent: sent.splice(0),
    states: states.splice(0),
  });
})();
