import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import test from "node:test";
import { runInSandbox, type SnippetInput, type SnippetOptions, type SnippetOutput } from "gaol/snippets";
import { tempFolder } from "./fake.mjs";
import { connection } from "./own.mjs";

/** Runs a snippet without packages. */
function run(input: SnippetInput, options: SnippetOptions = {}): Promise<SnippetOutput> {
  return runInSandbox(input, { connection, nodeModules: "", ...options });
}

test("a snippet has logs, facts and no errors", async () => {
  const lines: string[] = [];
  const { durationMs, ...output } = await run("export const n: number = 6 * 7;\nconsole.log('n', n, { n });\nconsole.warn([]);\nconsole.error('last');", { onLog: (line) => lines.push(line) });
  const logs = ['[log] n 42 {"n":42}', "[warn] []", "[error] last"];
  assert.deepEqual(output, { logs, facts: { n: 42 }, derived: {}, errors: [], timedOut: false });
  assert.deepEqual(lines, logs);
  assert.ok(durationMs > 0);
});

test("errors keep what has happened before", async () => {
  const thrown = await run({ source: "export const n = 1;\nconsole.log('begun');\nthrow new TypeError('no luck');" });
  assert.deepEqual([thrown.logs, thrown.facts, thrown.timedOut], [["[log] begun"], { n: 1 }, false]);
  assert.match(thrown.errors[0] ?? "", /TypeError: no luck/);
  const endless = await run({ source: "export const n = 1; console.log('begun'); for (;;);", timeoutMs: 3000 });
  assert.deepEqual([endless.logs, endless.facts, endless.timedOut], [["[log] begun"], { n: 1 }, true]);
  assert.deepEqual(endless.errors, ["wall-clock budget of 3000ms elapsed"]);
  const { errors } = await run("\nlet n: = 3");
  assert.match(errors[0] ?? "", /^src\/main\.ts:2:\d+ — /);
});

test("the rules for files are errors of the result", async () => {
  const file = { path: "src/main.ts", source: "1" };
  for (const input of [{}, { source: "1", files: [file] }, { files: [] }, { files: [{ ...file, path: "../main.ts" }] }, { files: Array.from({ length: 11 }, () => file) }, { source: "x".repeat(200_001) }]) {
    const { errors, logs, durationMs } = await run(input as SnippetInput);
    assert.equal(errors.length, 1, JSON.stringify(input).slice(0, 100));
    assert.deepEqual([logs, durationMs], [[], 0]);
  }
  assert.match((await run("1", { adapter: "unknown" })).errors[0] ?? "", /adapter "unknown"/);
  assert.match((await run("1", { nodeModules: "/none" })).errors[0] ?? "", /nodeModules "\/none"/);
});

test("a signal ends a snippet, whose logs stay", async () => {
  const control = new AbortController();
  const { logs, errors, timedOut } = await run("console.log('begun'); setInterval(() => {}, 1000)", { signal: control.signal, onLog: () => control.abort() });
  assert.deepEqual({ logs, errors, timedOut }, { logs: ["[log] begun"], errors: ["sandbox: aborted by caller signal"], timedOut: false });
});

test("onLog slows down the snippet", async () => {
  let waiting = 0;
  const { logs } = await run("for (let i = 0; i < 20; i++) console.log(i)", {
    async onLog() {
      assert.equal(++waiting, 1);
      await new Promise(setImmediate);
      waiting--;
    },
  });
  assert.equal(logs.length, 20);
});

test("snippets run at once, and share nothing", async () => {
  const source = "import { existsSync, writeFileSync } from 'node:fs'; export const found = [globalThis.x, existsSync('/workspace/f')]; globalThis.x = 1; writeFileSync('/workspace/f', 'x')";
  const outputs = await Promise.all(Array.from({ length: 6 }, () => run(source)));
  for (const { facts, errors } of outputs) assert.deepEqual([facts, errors], [{ found: [null, false] }, []]);
});

test("an adapter of one's own", async () => {
  const code = "export const read = (recorded, exported) => ({ facts: { names: Object.keys(exported) }, derived: { own: true } })";
  const { facts, derived, errors } = await run("export const a = 1, b = 2", { adapter: { name: "names", code } });
  assert.deepEqual([facts, derived, errors], [{ names: ["a", "b"] }, { own: true }, []]);
});

const stubs = path.resolve("../../runtime/snippets/testdata/packages/node_modules");

const cart = [
  {
    path: "src/main.ts",
    source: `import { createSystem } from "@directive-run/core";
      import { cart } from "./cart.js";
      const system = createSystem({ module: cart });
      system.start();
      system.facts.prices = [2, 9];
      console.log(system.derive.total);`,
  },
  {
    path: "src/cart.ts",
    source: `import { createModule } from "@directive-run/core";
      export const cart = createModule("cart", {
        init: (facts: { prices: number[] }) => { facts.prices = []; },
        derive: { total: (facts: { prices: number[] }) => facts.prices.reduce((a, b) => a + b, 0) },
      });`,
  },
];

test("a framework has state", async () => {
  const { durationMs: _, ...output } = await run({ files: cart }, { adapter: "directive", nodeModules: stubs });
  assert.deepEqual(output, { logs: ["[log] 11"], facts: { prices: [2, 9] }, derived: { total: 11 }, errors: [], timedOut: false });
});

test("lint rules of an adapter can be turned off", async () => {
  const source = "export const run = eval('1 + 1')";
  const checked = await run(source, { adapter: "directive", nodeModules: stubs });
  assert.match(checked.errors[0] ?? "", /^src\/main\.ts:1:20 — /);
  assert.deepEqual((await run(source, { adapter: "directive", nodeModules: stubs, lint: false })).errors, []);
});

test("packages are those of the nearest node_modules", { skip: process.env["GAOL_SOCKET"] && "only with a server of this process alone" }, async (t) => {
  const folder = tempFolder(t);
  const installed = path.join(folder, "node_modules/greeting");
  const project = path.join(folder, "packages/app");
  for (const dir of [installed, project]) mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(installed, "package.json"), '{"name":"greeting","version":"1.0.0","exports":"./index.mjs"}');
  writeFileSync(path.join(installed, "index.mjs"), "export const greeting = 'hello';");
  const source = 'import { greeting } from "greeting"; console.log(greeting)';
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(project);
  assert.deepEqual((await runInSandbox(source, { connection })).logs, ["[log] hello"]);
  assert.deepEqual((await runInSandbox(source, { connection, nodeModules: "../../node_modules" })).logs, ["[log] hello"]);
  const without = await runInSandbox(source, { connection, nodeModules: "" });
  assert.match(without.errors[0] ?? "", /^src\/main\.ts:1:\d+ — .*greeting/);
});

test("import and require return the same function", () => {
  const required = createRequire(import.meta.url)("gaol/snippets") as { runInSandbox: unknown };
  assert.equal(required.runInSandbox, runInSandbox);
});
