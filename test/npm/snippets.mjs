// Measures snippets for the benchmarks, in this process without a sandbox, or by gaol's npm package:
//
//	node snippets.mjs in-process ESBUILD PACKAGES
//	node snippets.mjs gaol SOCKET
//
// ESBUILD is a folder that has esbuild in node_modules, PACKAGES the node_modules of the snippets, and SOCKET that of a
// server with these packages. Each line of standard input is a measurement, whose milliseconds are printed:
//
//	run FOLDER    runs the snippet that consists of FOLDER/src
//	loop FOLDER   runs each file of FOLDER as a snippet, one after the other
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { newInProcess } from "./inprocess.mjs";

const [kind, where, packages] = process.argv.slice(2);

const libraries = {
  "in-process": () => newInProcess(where, packages),
  async gaol() {
    const { connect } = await import("../../cmd/npm/dist/index.mjs");
    const { runInSandbox } = await import("../../cmd/npm/dist/snippets/index.mjs");
    const connection = connect({ socket: where });
    return (files) => runInSandbox({ files }, { connection });
  },
};

const library = await libraries[kind]();

async function run(files) {
  const { errors, timedOut, logs, derived } = await library(files);
  assert.deepEqual({ errors, timedOut }, { errors: [], timedOut: false });
  return { logs, derived };
}

function read(folder, name) {
  return readFileSync(path.join(folder, name), "utf8");
}

const measurements = {
  async run(folder) {
    const names = readdirSync(path.join(folder, "src"));
    const files = names.map((name) => ({ path: `src/${name}`, source: read(folder, `src/${name}`) }));
    const start = performance.now();
    const { logs } = await run(files);
    const ms = performance.now() - start;
    assert.deepEqual(logs, ['[log] total 15 {"items":2}']);
    return ms;
  },
  async loop(folder) {
    const sources = readdirSync(folder).map((name) => read(folder, name));
    const start = performance.now();
    for (const source of sources) await run([{ path: "src/main.ts", source }]);
    return performance.now() - start;
  },
};

console.log("0");
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = line.split(" ");
  console.log(String(await measurements[name](...args)));
}
process.exit(0);
