"""What made the embedded model: generators, recipes and seeds; nothing here is needed to run it."""
