"""The codec frame that the embedded talker writes and the embedded codec reads.

A codec frame is 40 ms: eight acoustic vectors, one every 5 ms, laid end to end. A vector holds, in this
order, f0 in Hz (0 in a pause), 25 mel-cepstral coefficients (natural log of amplitude, warped with alpha
0.42, for samples in the int16 range) and the strength of voicing (0..1) in five bands.
"""

from __future__ import annotations

SAMPLE_RATE = 16_000
"""Hz, of the waveform."""
VECTOR_SAMPLES = 80
"""Samples one vector stands for (5 ms)."""
CEPSTRA = 25
BANDS = 5
VECTOR_WIDTH = 1 + CEPSTRA + BANDS
FRAME_VECTORS = 8
"""Vectors in one codec frame (25 frames a second, as Qwen-Omni's and MiniCPM-o's speech tokenizers have)."""
FRAME_WIDTH = FRAME_VECTORS * VECTOR_WIDTH
FRAME_SAMPLES = FRAME_VECTORS * VECTOR_SAMPLES
