// Functions and commands of this program that sandboxed programs call.
import assert from "node:assert/strict";
import test from "node:test";
import { hostFunction, type JSONSchema } from "gaol";
import { z } from "zod";
import { serverSchema } from "#dist/schema.js";
import { sandbox } from "./own.mjs";

test("schemas of libraries lose what the server does not have", () => {
  const schema = z.object({ mail: z.email(), pattern: z.string().regex(/^a/), kind: z.union([z.literal("a"), z.number()]), list: z.array(z.string()).optional() });
  assert.deepEqual(serverSchema(schema).schema, {
    type: "object",
    properties: { mail: { type: "string" }, pattern: { type: "string" }, kind: { anyOf: [{ type: "string", const: "a" }, { type: "number" }] }, list: { type: "array", items: { type: "string" } } },
    required: ["mail", "pattern", "kind"],
  });
  const either = z.discriminatedUnion("t", [z.object({ t: z.literal(1) }), z.object({ t: z.literal(2), m: z.email() })]);
  assert.equal(JSON.stringify(serverSchema(either)).includes("oneOf"), false); // of schemas that accept more, two can match
  type Tree = { children: Tree[] };
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree) }));
  assert.deepEqual(serverSchema(tree), { schema: { type: "object", properties: { children: { type: "array", items: {} } }, required: ["children"] }, unchecked: [] });
  for (const none of [z.object({ at: z.date() }), z.enum(Array.from({ length: 3000 }, (_, i) => `value ${i}`))]) { // JSON has no dates; too large
    assert.deepEqual(serverSchema(none), { unchecked: [] });
  }
});

/** Schemas as MCP servers have them, with the part that the server checks, and the keywords that are not checked. */
const simplified: [string, object, object, string[]][] = [
  ["annotations", { $schema: "http://json-schema.org/draft-07/schema#", $id: "x", title: "t", description: "d", default: 1, "x-order": 1, type: "number" }, { type: "number" }, []],
  ["names that are keywords", { type: "object", properties: { pattern: { type: "string" }, $ref: { const: "$ref" } }, required: ["pattern"], dependentRequired: { pattern: ["$ref"] } },
    { type: "object", required: ["pattern"], dependentRequired: { pattern: ["$ref"] }, properties: { pattern: { type: "string" }, $ref: { const: "$ref" } } }, []],
  ["patterns", { items: { type: "string", pattern: "^(?:a+)+[\\w-]{1,9}\\.$", format: "email" } }, { items: { type: "string", pattern: "^(?:a+)+[\\w-]{1,9}\\.$" } }, ["format"]],
  ["patterns of JavaScript", { anyOf: ["^(?!a)", "(a)\\1", "\\u0041", "a{2000}", "[^]", "(?<n>a)", "\\s", "[[]"].map((pattern) => ({ pattern })) }, { anyOf: Array.from({ length: 8 }, () => ({})) }, ["pattern"]],
  ["references", { $defs: { p: { type: "object", properties: { q: { $ref: "#/$defs/a~1b" } } }, "a/b": { minimum: 1 } }, $ref: "#/$defs/p" }, { type: "object", properties: { q: { minimum: 1 } } }, []],
  ["references beside keywords", { definitions: { p: { additionalProperties: false } }, properties: { a: true }, $ref: "#/definitions/p" }, { properties: { a: true }, allOf: [{ additionalProperties: false }] }, []],
  ["references without an end", { properties: { next: { $ref: "#" } }, required: ["next"] }, { required: ["next"], properties: { next: {} } }, ["$ref"]],
  ["references elsewhere", { anyOf: [{ $ref: "https://example.com/x" }, { $ref: "#/$defs/none" }, { $ref: "#anchor" }, { $ref: "#/%" }] }, { anyOf: [{}, {}, {}, {}] }, ["$ref"]],
  ["oneOf, complete", { type: "object", oneOf: [{ required: ["a"] }, { required: ["b"] }] }, { type: "object", oneOf: [{ required: ["a"] }, { required: ["b"] }] }, []],
  ["oneOf, incomplete", { anyOf: [{ maxLength: 5 }], oneOf: [{ pattern: "(?=a)" }, { pattern: "(?=b)" }] }, { anyOf: [{ maxLength: 5 }], allOf: [{ anyOf: [{}, {}] }] }, ["pattern", "oneOf"]],
  ["not", { not: { type: "null" }, allOf: [{ not: { pattern: "(?=a)" } }] }, { not: { type: "null" }, allOf: [{}] }, ["pattern", "not"]],
  ["if", { if: { properties: { a: { pattern: "(?=x)" } } }, then: { required: ["b"] }, else: false }, {}, ["pattern", "if"]],
  ["contains", { contains: { pattern: "(?=x)" }, minContains: 2, maxContains: 3 }, { contains: {}, minContains: 2 }, ["pattern", "maxContains"]],
  ["patternProperties", { patternProperties: { "^x": {} }, properties: { a: { type: "null" } }, additionalProperties: false, unevaluatedProperties: false }, { properties: { a: { type: "null" } } }, ["patternProperties", "unevaluatedProperties"]],
  ["draft 7", { items: [{ type: "number" }], additionalItems: false, dependencies: { a: ["b"], c: { required: ["d"] } } },
    { prefixItems: [{ type: "number" }], items: false, dependentRequired: { a: ["b"] }, dependentSchemas: { c: { required: ["d"] } } }, []],
];

for (const [name, schema, want, unchecked] of simplified) {
  test(`JSON Schemas are simplified: ${name}`, () => {
    assert.deepEqual(serverSchema(schema as JSONSchema), { schema: want, unchecked });
  });
}

test("references that multiply are bounded", () => {
  const $defs = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`d${i}`, { prefixItems: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }]));
  const { schema, unchecked } = serverSchema({ $defs, $ref: "#/$defs/d0" });
  assert.deepEqual(unchecked, ["$ref"]);
  assert(JSON.stringify(schema).length < 15 << 10);
  assert.throws(() => serverSchema({ anyOf: Array.from({ length: 5001 }, () => ({})) }), { code: "too_large" });
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

test("the server checks what it can of plain schemas", async (t) => {
  const globals = Object.fromEntries(simplified.map(([, schema], i) => [`f${i}`, hostFunction({ input: schema as JSONSchema }, () => i)]));
  await sandbox(t, { globals }); // the server accepts all
  const find = hostFunction({ input: { type: "object", properties: { pattern: { type: "string", pattern: "^[a-z]", format: "x" }, deep: { $ref: "#/$defs/deep" } }, $defs: { deep: { type: "integer" } } } }, (input) => input);
  assert.deepEqual(find.unchecked, ["format"]);
  const sb = await sandbox(t, { globals: { find } });
  const { value: result } = await sb.evaluate("[find({ pattern: 'a', deep: 1 }), ...[{ pattern: 'A' }, { deep: 'x' }].map((input) => { try { find(input) } catch (e) { return e.code } })]");
  assert.deepEqual(result, [{ pattern: "a", deep: 1 }, "ERR_ARGUMENTS", "ERR_ARGUMENTS"]);
  const large = hostFunction({ input: { enum: Array.from({ length: 3000 }, (_, i) => `value ${i}`) } }, () => 1);
  await assert.rejects(sandbox(t, { globals: { large } }), { code: "invalid", message: /the limit is/ });
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

test("BigInts arrive exactly, both as arguments and as results", { skip: !("rawJSON" in JSON) && "Node 20 reads no BigInts" }, async (t) => {
  const given: unknown[] = [];
  const globals = { data: { big: 2n ** 64n, list: [-1n, 5] }, echo: (...args: unknown[]) => (given.push(...args), { value: args[0] }) };
  const exact = await sandbox(t, { bigInts: true, globals });
  const e = await exact.evaluate<unknown[]>("[data.big, typeof data.list[0], echo(2n ** 63n + 1n, '12345678901234567890', 2 ** 60).value, [7n, 1e20]]");
  assert.equal(e.error, null);
  assert.deepEqual(e.value, [2n ** 64n, "bigint", 2n ** 63n + 1n, [7, 1e20]]);
  assert.deepEqual(given, [2n ** 63n + 1n, "12345678901234567890", 2 ** 60]);
  assert.deepEqual((await exact.run("__return([data.big])")).value, [2n ** 64n]);
  const refusing = await sandbox(t, { globals });
  assert.match((await refusing.evaluate("echo({ a: 2n })")).error?.message ?? "", /argument 1\.a: a BigInt cannot be encoded as JSON/);
});
