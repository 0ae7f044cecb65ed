"""The dialogue policy: words in, reply out, with a memory of what was heard."""
