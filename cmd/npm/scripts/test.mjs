// Runs the compiled tests: all, or those whose names contain one of the arguments, but none whose names contain
// an argument after a hyphen, as in -examples.
import { readdirSync } from "node:fs";
import { spawnSync } from "node:child_process";
import path from "node:path";

const wanted = process.argv.slice(2).filter((name) => !name.startsWith("-"));
const unwanted = process.argv.slice(2).flatMap((name) => (name.startsWith("-") ? [name.slice(1)] : []));
const files = readdirSync("build/test", { recursive: true })
  .filter((name) => name.endsWith(".test.mjs") && (wanted.length === 0 || wanted.some((w) => name.includes(w))))
  .filter((name) => !unwanted.some((w) => name.includes(w)))
  .map((name) => path.join("build/test", name))
  .sort();
if (files.length === 0) {
  console.error("no tests");
  process.exit(1);
}
// Tests wait most of their time. Those of one server would see each other's sandboxes. One that hangs fails by its name.
const flags = ["--test", `--test-concurrency=${process.env.GAOL_SOCKET ? 1 : 4}`, "--test-timeout=180000"];
const { status } = spawnSync(process.execPath, [...flags, ...files], { stdio: "inherit" });
process.exit(status ?? 1);
