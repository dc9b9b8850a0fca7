// Unknown options are refused by all functions, with the nearest name.
import assert from "node:assert/strict";
import test from "node:test";
import { expectTypeOf } from "expect-type";
import { batchRun, cancelBatchRun, connect, evaluate, GaolError, hostFunction, listSnapshots, NodeRuntime, removeSnapshot, run, Sandbox, submit, submitCommand, waitBatchRun, type CellOptions, type CommandOptions, type ContextOptions, type EvaluateOptions, type RunOptions, type SandboxOptions, type SpawnOptions, type SubmitCommandOptions, type SubmitOptions, type WaitBatchRunOptions } from "gaol";
import { codeTool } from "gaol/ai";
import { createSandbox, normalizeCode } from "gaol/evaluate";
import { runInSandbox } from "gaol/snippets";
import { sandboxTools } from "gaol/tools";
import { advice } from "#dist/names.js";
import type * as names from "#dist/optionnames.js";
import { fakeServer } from "./fake.mjs";
import { connection, sandbox } from "./own.mjs";

/** Asserts that a call is refused because of its only option, zzz, and that its close names are suggested. */
async function refuses(call: (options: never) => unknown): Promise<void> {
  const refused = async (name: string): Promise<GaolError> => {
    const error: unknown = await (async () => call({ [name]: 1 } as never))().catch((err: unknown) => err);
    assert(error instanceof GaolError && error.code === "invalid", `${String(call)} accepted ${name}: ${String(error)}`);
    assert.equal(error.errors[0]?.location, name);
    return error;
  };
  const { message } = await refused("zzzzzzzz");
  const [, known] = /^gaol: .+: unknown option "zzzzzzzz"; want (.*)$/.exec(message) ?? assert.fail(message);
  for (const name of known === "" ? [] : (known as string).split(", ")) {
    const { message } = await refused(`${name}x`);
    assert(message.endsWith(`; did you mean ${JSON.stringify(name)}?`), message);
  }
}

test("functions refuse unknown options", async (t) => {
  const sb = await sandbox(t, { commands: {} });
  const context = await sb.createContext();
  const runtime = await NodeRuntime.create();
  t.after(() => runtime.dispose());
  const process = await sb.spawn("sleep", ["100"]);
  t.after(() => process.kill());
  const { files } = sb;
  const calls: ((options: never) => unknown)[] = [
    connect, (o) => run("1", o), (o) => evaluate("1", o), (o) => listSnapshots(o), (o) => removeSnapshot("x", o), (o) => hostFunction(o, () => 1),
    (o) => submit("1", o), (o) => submitCommand("true", [], o), (o) => batchRun("x", o), (o) => waitBatchRun("x", o), (o) => cancelBatchRun("x", o),
    (o) => Sandbox.create(o), (o) => Sandbox.get("x", o), (o) => Sandbox.list(o),
    (o) => sb.run("1", o), (o) => sb.exec("1", o), (o) => sb.command("true", [], o), (o) => sb.evaluate("1", o),
    (o) => sb.followRun("1", o).result, (o) => sb.followExec("1", o).result, (o) => sb.followCommand("true", [], o).result, (o) => sb.followEvaluate("1", o).result,
    (o) => sb.spawn("true", [], o), (o) => sb.spawnCode("1", o), (o) => sb.createContext(o), (o) => context.evaluate("1", o),
    (o) => sb.addCommands({ name: o }), (o) => sb.waitForListener(1, o), (o) => sb.dial(1, o), (o) => sb.snapshot("x", o), (o) => process.signal("SIGCONT", o),
    (o) => files.read("/x", o), (o) => files.readText("/x", o), (o) => files.readStream("/x", o), (o) => files.write("/x", "", o), (o) => files.stat("/x", o),
    (o) => files.exists("/x", o), (o) => files.list("/", o), (o) => files.makeDir("/x", o), (o) => files.move("/x", "/y", o), (o) => files.remove("/x", o),
    (o) => files.readTar("/x", o), (o) => files.writeTar("/x", "", o),
    (o) => createSandbox({}, o), (o) => createSandbox().execute("1", o), (o) => normalizeCode("1", o), codeTool, (o) => codeTool({ connection }).execute({ code: "1" }, o),
    sandboxTools, (o) => sandboxTools({ connection }).sandbox_exists.execute({ containerId: "x", path: "/" }, o),
    (o) => runtime.run("1", o), (o) => runtime.exec("1", o), (o) => runtime.execCommand("true", [], o), (o) => runtime.spawn("1", o), (o) => runtime.spawnCommand("true", [], o),
    (o) => runtime.waitForListener({ port: 1 }, o), (o) => runtime.createResidentRunner(o),
  ];
  for (const call of calls) await refuses(call);
  await assert.rejects(NodeRuntime.create({ permisions: {} } as never), { message: 'permisions: unknown; did you mean "permissions"?' });
  for (const options of [null, 5]) await assert.rejects(run("1", options as never), { code: "invalid", message: "gaol: run: the options are not an object" });
  for (const [input, options, error] of [
    ["1", { timeout: 5 }, 'options: unknown field "timeout"; did you mean "timeoutMs"?'],
    [{ sourc: "1" }, {}, 'input: unknown field "sourc"; did you mean "source"?'],
  ] as const) assert.deepEqual((await runInSandbox(input as never, options as never)).errors, [error]);
});

test("unknown fields inside options are refused, too", async (t) => {
  for (const [options, unknown] of [
    [{ limits: { memory: 1 } }, '"limits.memory"; did you mean "memoryBytes"?'],
    [{ permissions: { netwrok: "deny" } }, '"permissions.netwrok"; did you mean "network"?'],
    [{ permissions: { fs: { rules: [{ mode: "allow" }, { mode: "deny", path: ["/x"] }] } } }, '"permissions.fs.rules[1].path"; did you mean "paths"?'],
    [{ calls: { timeout: 1 } }, '"calls.timeout"; did you mean "timeoutMs"?'],
    [{ mounts: [{ source: "/tmp", target: "/x", mode: "ro" }] }, '"mounts[0].mode"; want source, target, access'],
    [{ nodeModules: { host: "/x" } }, '"nodeModules.host"; did you mean "hostPath"?'],
  ] as const) await assert.rejects(Sandbox.create({ connection, ...options } as never), { code: "invalid", message: `gaol: Sandbox.create: unknown option ${unknown}` });
  const s = await connection.session();
  for (const params of [{ limits: { memory: 1 } }, { permissions: { netwrok: "deny" } }]) await assert.rejects(s.request("createSandbox", params), { code: "invalid" });
  const sb = await sandbox(t, { permissions: { network: { rules: [{ mode: "allow", operations: ["listen"], patterns: ["tcp://localhost:*"] }] }, process: { default: "allow", rules: [{ mode: "allow" }] } } });
  assert.throws(() => createSandbox({}, { connection, permissions: { net: "deny" } } as never), { code: "invalid" });
  await assert.rejects(sb.spawn("sh", [], { terminal: { row: 1 } } as never), { code: "invalid" });
});

test("the nearest name", () => {
  const known = ["permissions", "timeoutMs", "env", "cwd"];
  for (const [name, near] of [["permisions", "permissions"], ["Permissions", "permissions"], ["timeout", "timeoutMs"], ["timeOutMS", "timeoutMs"], ["envs", "env"]] as const) {
    assert.equal(advice(name, known), `; did you mean ${JSON.stringify(near)}?`);
  }
  for (const name of ["memory", "x".repeat(1e6)]) assert.equal(advice(name, known), "; want permissions, timeoutMs, env, cwd");
});

test("names are those of the types", () => {
  expectTypeOf<keyof typeof names.runNames>().toEqualTypeOf<keyof RunOptions>();
  expectTypeOf<keyof typeof names.commandNames>().toEqualTypeOf<keyof CommandOptions>();
  expectTypeOf<keyof typeof names.submitNames>().toEqualTypeOf<keyof SubmitOptions>();
  expectTypeOf<keyof typeof names.submitCommandNames>().toEqualTypeOf<keyof SubmitCommandOptions>();
  expectTypeOf<keyof typeof names.waitNames>().toEqualTypeOf<keyof WaitBatchRunOptions>();
  expectTypeOf<keyof typeof names.spawnNames>().toEqualTypeOf<keyof SpawnOptions>();
  expectTypeOf<keyof typeof names.evaluateNames>().toEqualTypeOf<keyof EvaluateOptions>();
  expectTypeOf<keyof typeof names.cellNames>().toEqualTypeOf<keyof CellOptions>();
  expectTypeOf<keyof typeof names.contextNames>().toEqualTypeOf<keyof ContextOptions>();
  expectTypeOf<keyof typeof names.sandboxNames>().toEqualTypeOf<keyof SandboxOptions>();
});

test("only 0 and Infinity ask for the longest time", async (t) => {
  const sent: unknown[] = [];
  const socket = await fakeServer(t, async (peer) => {
    for (;;) {
      const { id, body } = await peer.next(1);
      const { timeoutMs, maxTimeout } = (JSON.parse(body.toString()) as { params: Record<string, unknown> }).params;
      sent.push(timeoutMs ?? maxTimeout);
      peer.send(16, id, '{"cause":"","error":null,"logs":[],"calls":[],"denials":[],"durationMs":1,"usage":{"cpuMs":1,"peakMemoryBytes":1,"pids":1},"truncated":{"logs":false,"calls":false,"denials":false}}');
    }
  });
  const fake = connect({ socket });
  t.after(() => fake.close());
  for (const timeoutMs of [undefined, 0.5, 0, Infinity]) {
    await evaluate("1", { connection: fake, timeoutMs });
    await createSandbox({}, { connection: fake, timeoutMs }).execute("1");
    await codeTool({ connection: fake, timeoutMs }).execute({ code: "1" });
  }
  assert.deepEqual(sent, [undefined, 1, true, true].flatMap((limit) => [limit, limit, limit]));
  await assert.rejects(run("1", { connection: fake, timeoutMs: NaN }), { code: "invalid" });
});
