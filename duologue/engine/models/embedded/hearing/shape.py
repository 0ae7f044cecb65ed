"""What the encoder's trainer and its run time have to agree on."""

from __future__ import annotations

WIDTH = 256
DILATIONS = (1, 1, 2, 4, 1, 2, 4)
"""Of each block's convolution, in frames: together they look back 2.4 s."""
KERNEL = 5
DELAY = 4
"""Frames after the one in which a word ends until its last piece: 160 to 200 ms, as long as it takes to be sure."""
BLANK = 0
"""The class of a frame that ends no word."""
