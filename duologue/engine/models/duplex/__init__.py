"""The duplex family: a Qwen3-shaped thinker over audio units, a talker that writes codec tokens, a causal codec.

Each stage is a stock checkpoint of its own in a sub-folder, and all run on random weights where there are none.
"""
