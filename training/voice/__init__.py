"""The embedded voice: a corpus spoken by flite's rms, a parametric codec, and a talker that writes its codes.

``python -m training.voice`` makes all of it and prints the figures; each part is a command of its own.
"""
