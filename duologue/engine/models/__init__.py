"""One folder a model family: thinker, talker, codec, unit format."""
