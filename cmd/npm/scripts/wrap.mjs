// Writes an ES module for each entry of the package. The code itself is CommonJS, so that a
// program that both imports and requires gaol has one copy of it: one connection, and one class of each
// error.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { exports } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

for (const entry of Object.values(exports)) {
  if (typeof entry === "string") continue; // package.json
  const target = `./${path.basename(entry.require.default)}`;
  for (const file of [entry.import.default, entry.import.types]) {
    writeFileSync(path.join(root, file), `export * from ${JSON.stringify(target)};\n`);
  }
}
