// Functions and commands of this program that sandboxed programs call.
import assert from "node:assert/strict";
import test from "node:test";
import { hostFunction } from "gaol";
import { z } from "zod";
import { serverSchema } from "#dist/schema.js";
import { sandbox } from "./own.mjs";

test("schemas of libraries lose what the server does not have", () => {
  const schema = z.object({ mail: z.email(), pattern: z.string().regex(/^a/), kind: z.union([z.literal("a"), z.number()]), list: z.array(z.string()).optional() });
  assert.deepEqual(serverSchema(schema), {
    type: "object",
    properties: { mail: { type: "string" }, pattern: { type: "string" }, kind: { anyOf: [{ type: "string", const: "a" }, { type: "number" }] }, list: { type: "array", items: { type: "string" } } },
    required: ["mail", "pattern", "kind"],
  });
  const either = z.discriminatedUnion("t", [z.object({ t: z.literal(1) }), z.object({ t: z.literal(2), m: z.email() })]);
  assert.equal(JSON.stringify(serverSchema(either)).includes("oneOf"), false);
  type Tree = { children: Tree[] };
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree) }));
  assert.equal(serverSchema(tree), undefined); // $ref
  assert.equal(serverSchema(z.object({ at: z.date() })), undefined); // JSON has no dates
  assert.equal(serverSchema(z.enum(Array.from({ length: 3000 }, (_, i) => `value ${i}`))), undefined); // too large
  const own = { type: "string", pattern: "x" };
  assert.equal(serverSchema(own), own); // the server refuses it
});

test("functions get validated input, and programs get values and errors", async (t) => {
  const seen: unknown[] = [];
  const sb = await sandbox(t, {
    globals: {
      api: {
        add: hostFunction({ input: z.object({ a: z.number(), b: z.number().default(10) }) }, ({ a, b }) => a + b),
        mail: hostFunction({ input: z.object({ to: z.email() }) }, ({ to }) => to),
        checked: hostFunction({ input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } }, (input) => (seen.push(input), { at: new Date(0), bytes: new Uint8Array([1, 2]) })),
        version: 3,
        nothing: () => undefined,
      },
      fail: () => { throw Object.assign(new Error("mine"), { code: "E_MINE" }); },
      slow: hostFunction({ async: true }, async (ms) => new Promise((resolve) => setTimeout(resolve, ms as number, ms))),
      data: { list: [1, { deep: new Date(5) }] },
    },
  });
  const r = await sb.run(`
    const failure = (f) => { try { f(); } catch (e) { return [e.code, e.message]; } };
    const { at, bytes } = api.checked({ n: 1 });
    const both = await Promise.all([slow(50), slow(51)]);
    __return([api.add({ a: 1 }), api.version, api.nothing(), at.getTime(), bytes.length, data.list[1].deep.getTime(), both,
      failure(() => api.add({ a: "x" })), failure(() => api.mail({ to: "nobody" })), failure(() => api.checked({})), failure(() => api.checked()), failure(fail)]);`);
  const [add, version, nothing, at, bytes, deep, both, type, mail, missing, none, thrown] = r.value as unknown[] & string[][];
  assert.deepEqual([add, version, nothing, at, bytes, deep, both], [11, 3, null, 0, 2, 5, [50, 51]]);
  for (const [code] of [type, mail, missing, none] as string[][]) assert.equal(code, "ERR_ARGUMENTS");
  assert.match(mail?.[1] ?? "", /to: .*email/i); // only this program checks that
  assert.deepEqual(thrown, ["E_MINE", "mine"]);
  assert.deepEqual(seen, [{ n: 1 }]);
  assert.equal(r.calls.length, 10);
});

test("a function's signal ends with its run", async (t) => {
  let reason: unknown;
  let called = (): void => undefined;
  const calling = new Promise<void>((resolve) => (called = resolve));
  let aborted = (): void => undefined;
  const end = new Promise<void>((resolve) => (aborted = resolve));
  const sb = await sandbox(t, {
    globals: {
      wait: hostFunction({}, (_, { signal }) => {
        called();
        return new Promise((resolve) => signal.addEventListener("abort", () => { reason = signal.reason; aborted(); resolve(1); }));
      }),
    },
  });
  const control = new AbortController();
  const running = assert.rejects(sb.run("wait()", { signal: control.signal }), { name: "AbortError" });
  await calling;
  control.abort();
  await running;
  await end;
  assert(reason instanceof Error);
});

test("a schema that the server does not accept is refused", async (t) => {
  const f = hostFunction({ input: { type: "string", pattern: "x" } }, () => 1);
  await assert.rejects(sandbox(t, { globals: { f } }), { code: "invalid", message: /pattern/ });
});

test("commands are programs on PATH", async (t) => {
  const sb = await sandbox(t, {
    commands: {
      "get-weather": ({ args }) => `rain in ${args.join(",")}\n`,
      upper: { stdin: true, run: ({ stdin }) => stdin.toUpperCase() },
      status: () => ({ stderr: "warning\n", exitCode: 7 }),
      broken: () => { throw new Error("mine"); },
    },
  });
  assert.equal((await sb.command("get-weather", ["--json", "{}"])).stdout, "rain in --json,{}\n");
  const r = await sb.run(`const { execFileSync, spawnSync } = require("child_process");
    const { status, stderr } = spawnSync("status");
    __return([execFileSync("upper", { input: "abc" }) + "", status, stderr + "", spawnSync("broken").stderr + "", execFileSync("sh", ["-c", "get-weather a | wc -c"]) + ""])`, { format: "cjs" });
  assert.deepEqual(r.value, ["ABC", 7, "warning\n", "mine\n", "10\n"]);
  await sb.addCommands({ later: () => "1", "get-weather": () => "replaced" });
  assert.equal((await sb.command("sh", ["-c", "later; get-weather"])).stdout, "1replaced");
});
