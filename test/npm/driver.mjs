// Measures gaol's npm package, or secure-exec, for the benchmarks:
//
//	node driver.mjs gaol SOCKET
//	node driver.mjs secure-exec FOLDER
//
// SOCKET is that of a gaol server; FOLDER has secure-exec in node_modules. Each line of standard input is a
// measurement, whose milliseconds are printed:
//
//	create      creates a sandbox and makes its first run
//	run         makes a run in a sandbox that has made some
//	burst N C   makes N runs in it, C at a time
import assert from "node:assert/strict";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [kind, where] = process.argv.slice(2);

const open = {
  async gaol() {
    const { connect, Sandbox } = await import("../../cmd/npm/dist/index.mjs");
    const connection = connect({ socket: where });
    return async () => {
      const sandbox = await Sandbox.create({ connection });
      return { run: async (code) => (await sandbox.run(code)).stdout, close: () => sandbox.close() };
    };
  },
  async "secure-exec"() {
    const { createVm } = await import(pathToFileURL(path.join(where, "node_modules/secure-exec/dist/index.js")));
    return async () => {
      const vm = await createVm();
      const run = async (code) => (await vm.javascript.execute(code, { output: { capture: "all" } })).stdout;
      return { run, close: () => vm.dispose() };
    };
  },
}[kind];

const create = await open();
const run = async (sandbox) => assert.equal(await sandbox.run("console.log(6 * 7)"), "42\n");
let warm;

const measurements = {
  async create() {
    const start = performance.now();
    const sandbox = await create();
    await run(sandbox);
    const ms = performance.now() - start;
    await sandbox.close();
    return ms;
  },
  async run() {
    const start = performance.now();
    await run(warm);
    return performance.now() - start;
  },
  async burst(n, concurrent) {
    let left = Number(n);
    const worker = async () => {
      while (left-- > 0) await run(warm);
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: Number(concurrent) }, worker));
    return performance.now() - start;
  },
};

warm = await create();
for (let i = 0; i < 3; i++) await run(warm);
console.log("0");
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = line.split(" ");
  console.log(String(await measurements[name](...args)));
}
await warm.close();
process.exit(0);
