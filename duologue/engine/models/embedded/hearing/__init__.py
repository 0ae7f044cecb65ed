"""A trained encoder of speech: 16 kHz PCM to word pieces and rows of the thinker's embeddings, in numpy.

Its weights come from ``training/hearing``; ``hearing: neural`` of the embedded thinker uses it.
"""
