"""MiniCPM-o 4.5's token2wav: codes to mel frames by a flow, mel frames to a waveform by a vocoder, in a voice."""
