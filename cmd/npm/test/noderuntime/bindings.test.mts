import assert from "node:assert/strict";
import test from "node:test";
import { z } from "zod";
import type { BindingDefinition } from "gaol";
import { type Bindings, newBindings } from "#dist/noderuntime/bindings.js";
import { kebabCase, parseCommandLine } from "#dist/noderuntime/commandline.js";
import { compileSchema } from "#dist/noderuntime/jsonschema.js";

const weather: BindingDefinition = {
  description: "Looks up the temperature of a city",
  inputSchema: { type: "object", properties: { city: { type: "string", description: "its name" }, inKelvin: { type: "boolean" } }, required: ["city"], additionalProperties: false },
  handler: ({ city, inKelvin }: { city: string; inKelvin?: boolean }) => ({ city, degrees: inKelvin === true ? 294 : 21 }),
  examples: [{ description: "Tokyo", input: { city: "Tokyo" } }],
  commandAliases: ["weather"],
};

function bindingsOf(definitions: Record<string, BindingDefinition>, allows = (_name: string): boolean => true): Bindings {
  const bindings = newBindings(allows);
  bindings.add(definitions);
  return bindings;
}

test("bindings are called by name, alias and command", async () => {
  const bindings = newBindings(() => true);
  assert.deepEqual(bindings.add({ getWeather: weather }), ["get-weather", "weather"]);
  const expected = { city: "Tokyo", degrees: 21 };
  for (const name of ["getWeather", "get-weather", "weather"]) assert.deepEqual(await bindings.call(name, { city: "Tokyo" }), expected);
  assert.equal(await bindings.command("get-weather", ["get-weather", "--json", '{"city":"Tokyo"}']), `${JSON.stringify({ ok: true, result: expected })}\n`);
  assert.equal(await bindings.command("weather", ["--city", "Tokyo", "--in-kelvin"]), '{"ok":true,"result":{"city":"Tokyo","degrees":294}}\n');
  assert.match(await bindings.command("weather", ["--help"]), /^Looks up .*\n\nUsage: weather .*\n\nFlags:\n {2}--city <string> {2}its name \(required\)\n {2}--in-kelvin\n\nExamples:\n {2}Tokyo: weather --json '\{"city":"Tokyo"\}'\n$/);
});

test("what programs may not call is refused", async () => {
  let calls = 0;
  const bindings = bindingsOf({ secret: { ...weather, commandAliases: ["s"], handler: () => ++calls } }, (name) => name !== "secret");
  for (const name of ["secret", "s"]) await assert.rejects(bindings.call(name, { city: "x" }), { code: "forbidden", message: "blocked by binding.invoke policy for secret" });
  await assert.rejects(bindings.command("s", []), { code: "forbidden" });
  for (const name of ["nothing", "__proto__", "", 1, undefined, { toString: () => "s" }]) await assert.rejects(bindings.call(name, {}), { code: "not_found" });
  assert.equal(calls, 0);
});

test("inputs are checked before the handler is called", async () => {
  let calls = 0;
  const json = bindingsOf({ get: { ...weather, handler: () => ++calls } });
  const zod = bindingsOf({ get: { description: "", inputSchema: z.object({ n: z.number().max(3) }), handler: ({ n }: { n: number }) => n + calls } });
  for (const input of [undefined, null, 1, "x", [], {}, { city: 1 }, { city: "x", more: 1 }]) await assert.rejects(json.call("get", input), { code: "ERR_ARGUMENTS" });
  for (const input of [{}, { n: 4 }, { n: "1" }]) await assert.rejects(zod.call("get", input), { code: "ERR_ARGUMENTS", message: /^input of get: n: / });
  assert.equal(calls, 0);
  assert.equal(await zod.call("get", { n: 2 }), 2);
  assert.equal(await zod.command("get", ["--n", "3"]), '{"ok":true,"result":3}\n');
});

test("results are JSON, and slow handlers are given up", async () => {
  const bindings = bindingsOf({
    date: { description: "", inputSchema: {}, handler: () => ({ at: new Date(0), nothing: undefined }) },
    none: { description: "", inputSchema: {}, handler: () => undefined },
    cyclic: { description: "", inputSchema: {}, handler: () => { const a: unknown[] = []; a.push(a); return a; } },
    slow: { description: "", inputSchema: {}, timeoutMs: 1, handler: () => new Promise(() => undefined) },
    failing: { description: "", inputSchema: {}, handler: () => Promise.reject(new Error("no such city")) },
  });
  assert.deepEqual(await bindings.call("date", {}), { at: "1970-01-01T00:00:00.000Z" });
  assert.equal(await bindings.call("none", {}), null);
  await assert.rejects(bindings.call("cyclic", {}), TypeError);
  await assert.rejects(bindings.call("slow", {}), { code: "timeout", message: "binding slow timed out after 1ms" });
  await assert.rejects(bindings.command("failing", []), { message: "no such city" });
});

test("names are unique, and all or none are added", async () => {
  const bindings = bindingsOf({ add: weather });
  assert.throws(() => bindings.add({ other: { ...weather, commandAliases: [] }, add: weather }), { code: "conflict" });
  await assert.rejects(bindings.call("other", {}), { code: "not_found" });
  assert.throws(() => bindings.add({ a: { ...weather, commandAliases: ["weather"] } }), { code: "conflict" });
  const many = Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`b${i}`, { ...weather, commandAliases: [] }]));
  assert.throws(() => bindings.add(many), { code: "invalid", message: /more than 256/ });
});

const schema = {
  type: "object",
  properties: { url: { type: "string" }, fullPage: { type: "boolean" }, width: { type: "integer" }, ratio: { type: "number" }, tags: { type: "array", items: { type: "string" } }, sizes: { type: "array", items: { type: "integer" } }, o: { type: "object" }, __proto__x: { type: "string" } },
};

const commandLines: [string[], unknown][] = [
  [[], {}],
  [["shot"], {}],
  [["--url", "x", "--full-page", "--width", "3", "--ratio", "0.5"], { url: "x", fullPage: true, width: 3, ratio: 0.5 }],
  [["--no-full-page", "--tags", "a", "--tags", "b", "--sizes", "1"], { fullPage: false, tags: ["a", "b"], sizes: [1] }],
  [["--o", '{"a":1}'], { o: { a: 1 } }],
  [["--json", '{"a":[1]}'], { a: [1] }],
];

for (const [args, input] of commandLines) {
  test(`command line: ${args.join(" ")}`, () => assert.deepEqual(parseCommandLine("shot", args, schema), input));
}

for (const args of [["x"], ["--nothing"], ["--url"], ["--width", "1.5"], ["--width", ""], ["--ratio", "NaN"], ["--no-url"], ["--json", "{"], ["--json-file", "/etc/passwd"], ["--json"], ["--json", "1", "2"], ["--__proto__", "1"]]) {
  test(`command line is refused: ${args.join(" ")}`, () => assert.throws(() => parseCommandLine("shot", args, schema)));
}

test("names of commands", () => {
  assert.deepEqual(["getWeather", "get-weather", "HTTPGet", "a1B", "x"].map(kebabCase), ["get-weather", "get-weather", "http-get", "a1-b", "x"]);
});

const schemas: [object, unknown[], unknown[]][] = [
  [{ type: ["string", "null"] }, ["", null], [1, {}]],
  [{ type: "integer", minimum: 1, exclusiveMaximum: 3 }, [1, 2], [0, 3, 1.5, "1"]],
  [{ maximum: 2, exclusiveMinimum: 0, multipleOf: 0.5 }, [0.5, 2, "x"], [0, 2.5, 0.3]],
  [{ type: "string", minLength: 1, maxLength: 2 }, ["é", "ab", "😀😀"], ["", "abc"]],
  [{ type: "array", items: { type: "number" }, minItems: 1, maxItems: 2 }, [[1]], [[], [1, 2, 3], ["a"]]],
  [{ enum: ["a", { b: [1] }] }, ["a", { b: [1] }], ["b", { b: [2] }, { b: [1], c: 1 }]],
  [{ const: null }, [null], [0, undefined]],
  [{ anyOf: [{ type: "string" }, { type: "number" }] }, ["a", 1], [true]],
  [{ oneOf: [{ type: "number" }, { type: "integer" }] }, [1.5], [1, "a"]],
  [{ allOf: [{ required: ["a"] }, { required: ["b"] }] }, [{ a: 1, b: 1 }, 1], [{ a: 1 }]],
  [{ additionalProperties: { type: "number" }, properties: { a: {} }, propertyNames: { maxLength: 1 } }, [{ a: "x", b: 1 }], [{ b: "x" }, { ab: 1 }]],
  [{ properties: { a: false } }, [{}, { b: 1 }], [{ a: 1 }]],
];

for (const [schema, valid, bad] of schemas) {
  test(`schema: ${JSON.stringify(schema)}`, () => {
    const check = compileSchema(schema, "schema");
    for (const value of valid) assert.equal(check(value, "$"), undefined, JSON.stringify(value));
    for (const value of bad) assert.match(check(value, "$") ?? "", /^\$/, JSON.stringify(value));
  });
}

test("schemas with what cannot be checked are refused", () => {
  const nested = Array.from({ length: 40 }).reduce<object>((inner) => ({ items: inner }), {});
  for (const schema of [{ pattern: "^a" }, { $ref: "#" }, { not: {} }, { type: "text" }, { required: "a" }, { properties: [] }, { minimum: "1" }, { anyOf: {} }, { items: [{}] }, { constructor: 1 }, nested]) {
    assert.throws(() => compileSchema(schema, "schema"), { code: "invalid" }, JSON.stringify(schema));
  }
});
