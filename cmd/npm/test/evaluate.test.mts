import assert from "node:assert/strict";
import test from "node:test";
import { GaolError, hostFunction } from "gaol";
import { createSandbox, normalizeCode, SANDBOX_MEMORY_MB } from "gaol/evaluate";
import { z } from "zod";
import { connection } from "./own.mjs";

test("functions look synchronous, and calls are counted", async () => {
  const users = new Map([[1, { name: "Ada", born: new Date("1815-12-10T00:00:00Z") }]]);
  const sandbox = createSandbox(
    {
      limit: 10,
      api: { get: async (id: number) => users.get(id), add: hostFunction({ input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b) },
    },
    { connection },
  );
  const r = await sandbox.execute<string>("Sure!\n\n```ts\nconst u: any = api.get(1)\nconsole.log(u.name, limit);\n`${u.born.getUTCFullYear()} ${api.add({ a: 1, b: 2 })}`\n```");
  assert.deepEqual({ ...r, durationMs: 0 }, { result: "1815 3", error: undefined, logs: ["Ada 10"], durationMs: 0, apiCallCount: 2, denials: [] });
  assert.ok(r.durationMs > 0);
});

test("errors show the line", async () => {
  const sandbox = createSandbox({ fail: () => Promise.reject(new Error("no luck")) }, { connection });
  const thrown = await sandbox.execute("console.log(1)\nfail()");
  assert.match(thrown.error ?? "", /^Error: no luck\n(.*\n)*.*fail\(\)/);
  assert.deepEqual([thrown.result, thrown.logs, thrown.apiCallCount], [undefined, ["1"], 1]);
  const syntax = await sandbox.execute("let =");
  assert.match(syntax.error ?? "", /^SyntaxError: .*\n(.*\n)*.*let =/);
});

test("limits", async () => {
  let calls = 0;
  const sandbox = createSandbox({ f: () => ++calls }, { connection, timeoutMs: 500, maxOutputSize: 100, maxApiCalls: 2 });
  const [endless, many, large, memory] = await Promise.all([
    sandbox.execute("for (;;);"),
    sandbox.execute("f(); f(); f()"),
    sandbox.execute("'x'.repeat(1000)"),
    createSandbox({}, { connection }).execute(`Buffer.alloc(${SANDBOX_MEMORY_MB - 128} << 20, 1).length >> 20`),
  ]);
  assert.match(endless.error ?? "", /^TimeoutError/);
  assert.match(many.error ?? "", /calls/);
  assert.equal(calls, 2);
  assert.equal(many.apiCallCount, 2);
  assert.notEqual(large.error, undefined);
  assert.equal(memory.result, SANDBOX_MEMORY_MB - 128);
  const tooMuch = await createSandbox({}, { connection }).execute(`Buffer.alloc(${SANDBOX_MEMORY_MB} << 20, 1).length`);
  assert.match(tooMuch.error ?? "", /^OutOfMemoryError/);
});

test("causes are in the error, and what was denied is listed", async () => {
  const r = await createSandbox({}, { connection, permissions: { network: "deny" } }).execute("fetch('http://127.0.0.1:3000/')");
  assert.match(r.error ?? "", /^TypeError: fetch failed: .*(EACCES|EPERM).*, denied by network\.default\n.*fetch\('http/);
  assert(r.denials.length > 0 && r.denials.every((d) => d.scope === "network" && d.rule === "network.default"), JSON.stringify(r.denials));
});

test("executions share nothing", async () => {
  const sandbox = createSandbox({}, { connection });
  await sandbox.execute("globalThis.x = 1; require('fs').writeFileSync('/workspace/f', 'x')");
  const r = await sandbox.execute("[typeof x, require('fs').existsSync('/workspace/f')]");
  assert.deepEqual(r.result, ["undefined", false]);
});

test("a signal ends an execution", async () => {
  const reason = new Error("enough");
  const control = new AbortController();
  const sandbox = createSandbox({ started: () => control.abort(reason) }, { connection });
  await assert.rejects(sandbox.execute("started(); for (;;);", { signal: control.signal }), reason);
});

test("options are strict", () => {
  assert.throws(() => createSandbox({}, { timeout: 1 } as never), /unknown option "timeout"; did you mean "timeoutMs"/);
  for (const wrong of [{ maxApiCalls: 1001 }, { maxApiCalls: 1.5 }, { maxOutputSize: -1 }]) assert.throws(() => createSandbox({}, wrong), RangeError);
  for (const timeoutMs of [NaN, -Infinity, "5"]) assert.throws(() => createSandbox({}, { timeoutMs: timeoutMs as number }), { code: "invalid" });
});

test("an isolation that does not exist is an error of gaol", async () => {
  const sandbox = createSandbox({}, { connection, isolation: "docker" });
  await assert.rejects(sandbox.execute("1"), { code: "invalid" });
});

test("normalizeCode", async () => {
  const module = await normalizeCode("```js\nconst n: number = 6\nn * 7\n```", { connection });
  assert.ok(module.includes("__evaluated") && !module.includes("```") && !module.includes(": number"), module);
  await assert.rejects(normalizeCode("1\nlet =", { connection }), (e: Error) => e instanceof SyntaxError && e.message.includes("let ="));
  await assert.rejects(normalizeCode("x".repeat(5 << 20), { connection }), GaolError);
});
