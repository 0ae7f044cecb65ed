"""The trained thinker: a small Qwen3-shaped decoder that reads words, decides to listen or to speak, and calls skills.

Its weights are in ``weights/thinker`` beside this package; ``training/thinker`` made them.
"""
