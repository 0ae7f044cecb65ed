"""What the thinker learns from: phrasings, the language of its callers, and what the recogniser makes of it."""
