"""Everything that faces a caller; of the engine it knows only ``duologue.engine``'s public names."""
