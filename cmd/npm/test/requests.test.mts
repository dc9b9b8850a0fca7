// The JSON of requests, events and results.
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { batchRun, cancelBatchRun, connect, evaluate, GaolError, listSnapshots, Sandbox, submit, submitCommand, waitBatchRun, type Connection, type RunEvent } from "gaol";
import { decode } from "#dist/perform.js";
import { fakeServer } from "./fake.mjs";

const [requestKind, resultKind, stdoutKind, eventKind] = [1, 16, 18, 20] as const;
const sandboxInfo = { id: "sb-1", created: "2026-01-02T03:04:05Z", expires: "2026-01-02T03:04:05Z", lifetimeEnd: "2026-01-02T03:04:05Z", isolation: "native", processes: 0 };
const usage = { cpuMs: 1, peakMemoryBytes: 2, pids: 3 };
const run = { stdout: "", stderr: "", exitCode: 0, signal: "", cause: "", durationMs: 1, usage, truncated: { stdout: false, stderr: false, denials: false }, denials: [], launcher: "exec" };
const evaluation = { error: null, logs: [], calls: [], durationMs: 1, cause: "", usage, denials: [], truncated: { logs: false, calls: false, denials: false } };
const processInfo = { id: "p-1", pid: 7, state: "running", program: "sh", args: [], started: "2026-01-02T03:04:05Z", terminal: false, usage: { ...usage, memoryBytes: 4 }, lastEventId: 0 };
const contextInfo = { id: "c-1", state: "running", created: "2026-01-02T03:04:05Z", cells: 0 };
const queued = { key: "k", state: "queued", submitted: "2026-01-02T03:04:05Z" };

/** The events and the result of each operation. */
const replies: Record<string, [events: [string, unknown][], result: unknown]> = {
  createSandbox: [[], sandboxInfo],
  runIn: [[], run],
  evaluateIn: [[], evaluation],
  evaluate: [[], evaluation],
  evaluateCell: [[], evaluation],
  listSandboxes: [[], { sandboxes: [sandboxInfo], missing: ["n2"] }],
  listSnapshots: [[], { snapshots: [] }],
  submitRun: [[], queued],
  getBatchRun: [[], { ...queued, state: "done", result: { ...run, stdout: 1 } }],
  waitBatchRun: [[], { ...queued, state: "done", attempts: 1, done: queued.submitted, result: { ...run, stdout: "é", stderr: "\uFFFD", stderrBytes: "/w==", value: 1 } }],
  cancelBatchRun: [[], { ...queued, state: "done", error: { code: "no_program", status: 422, detail: "d", newer: 1 } }],
  spawn: [[["started", processInfo]], { ...processInfo, state: "ended", result: run }],
  createContext: [[["started", contextInfo]], { ...contextInfo, state: "ended", reason: "the context was closed", exitCode: 3 }],
};

/** Returns a connection to a server that replies, and the requests that it has got. */
async function recorded(t: TestContext): Promise<{ connection: Connection; last(): unknown }> {
  const requests: unknown[] = [];
  const socket = await fakeServer(t, async (peer) => {
    for (;;) {
      const { id, body } = await peer.next(requestKind);
      const request = JSON.parse(body.toString()) as { method: string };
      requests.push(request);
      const [events, result] = replies[request.method] ?? [[], null];
      for (const [event, data] of events) peer.send(eventKind, id, JSON.stringify({ event, data }));
      peer.send(resultKind, id, JSON.stringify(result));
    }
  });
  const connection = connect({ socket });
  t.after(() => connection.close());
  return { connection, last: () => requests.at(-1) };
}

test("lists have the nodes of a fleet that did not reply", async (t) => {
  const { connection } = await recorded(t);
  const list = await Sandbox.list({ connection });
  assert.deepEqual([list.length, list[0]?.id, list.missing], [1, "sb-1", ["n2"]]);
  const complete = await listSnapshots({ connection });
  assert.equal(complete.missing, undefined);
  assert.deepEqual(complete, []);
});

test("requests name an operation, its input, streams and functions", async (t) => {
  const { connection, last } = await recorded(t);
  const globals = { n: 1, f: () => 1 };
  const functions = (id: number) => [{ id, path: ["f"] }];
  const sandbox = await Sandbox.create({ connection, globals, commands: { c: () => "" }, calls: { calls: 5 }, files: { "/a": "text", "/b": new Uint8Array([1]) }, limits: { cpuTimeMs: 1.5 } });
  assert.deepEqual(last(), {
    method: "createSandbox", params: { globals: { n: 1 }, files: { "/a": "text" }, fileBytes: { "/b": "AQ==" }, limits: { cpuTimeMs: 2 } }, stdin: false, events: false,
    host: { functions: functions(1), commands: [{ name: "c", id: 2 }], calls: { calls: 5 } }, detached: false,
  });
  assert.deepEqual([sandbox.missing, (await sandbox.run("1")).calls], [[], []]);
  assert.deepEqual(last(), { method: "runIn", params: { sandbox: "sb-1", code: "1" }, stdin: false, events: false });
  await sandbox.run("1", { stdin: "in", onStdout: () => undefined, timeoutMs: 0, args: ["a"] });
  assert.deepEqual(last(), { method: "runIn", params: { sandbox: "sb-1", code: "1", maxTimeout: true, args: ["a"] }, stdin: true, events: true });
  await evaluate("1", { connection, globals, maxCalls: 7, onLog: () => undefined });
  const host = { functions: functions(3), calls: { calls: 7 } };
  assert.deepEqual(last(), { method: "evaluate", params: { code: "1", globals: { n: 1 } }, stdin: false, events: true, host });
  const process = await sandbox.spawn("sh", ["-i"], { terminal: { rows: 2 } });
  assert.deepEqual(last(), { method: "spawn", params: { sandbox: "sb-1", command: "sh", args: ["-i"], terminal: { rows: 2 } }, stdin: true, events: true });
  await process.signal("SIGHUP", { group: true });
  assert.deepEqual([process.pid, last()], [7, { method: "signalProcess", params: { sandbox: "sb-1", process: "p-1", signal: "SIGHUP", group: true }, stdin: false, events: false }]);
  const context = await sandbox.createContext({ lastValue: true });
  assert.deepEqual(last(), { method: "createContext", params: { sandbox: "sb-1", globals: {}, lastValue: true }, stdin: false, events: true, host: { functions: [] } });
  assert.deepEqual(await context.ended, { reason: "the context was closed", exitCode: 3 });
  await context.evaluate("2");
  assert.deepEqual(last(), { method: "evaluateCell", params: { sandbox: "sb-1", context: "c-1", code: "2", globals: {} }, stdin: false, events: false, host: { functions: [], calls: {} } });
  await sandbox.files.makeDir(Buffer.from([0x2f, 0xff]));
  assert.deepEqual(last(), { method: "makeFolder", params: { sandbox: "sb-1", pathBytes: "L/8=" }, stdin: false, events: false });
});

test("requests about batch runs", async (t) => {
  const { connection, last } = await recorded(t);
  const submitted = new Date(queued.submitted);
  assert.deepEqual(await submit("1", { connection, key: "k", name: "a.ts", stdin: "in", timeoutMs: 0, args: ["a"], files: { "/b": new Uint8Array([1]) }, limits: { cpuTimeMs: 1.5 }, nodeModules: "snapshot:m" }), { ...queued, submitted });
  assert.deepEqual(last(), {
    method: "submitRun", stdin: false, events: false,
    params: { code: "1", idempotencyKey: "k", name: "a.ts", stdin: "in", maxTimeout: true, args: ["a"], fileBytes: { "/b": "AQ==" }, limits: { cpuTimeMs: 2 }, nodeModules: "snapshot:m" },
  });
  await submitCommand("sh", ["-i"], { connection, timeoutMs: 0.5, cwd: "/" });
  assert.deepEqual(last(), { method: "submitRun", params: { command: "sh", args: ["-i"], timeoutMs: 1, cwd: "/" }, stdin: false, events: false });
  const { result, ...done } = await waitBatchRun<number>("k", { connection, timeoutMs: 1.5 });
  assert.deepEqual(last(), { method: "waitBatchRun", params: { key: "k", timeoutMs: 2 }, stdin: false, events: false });
  assert.deepEqual(done, { key: "k", state: "done", submitted, attempts: 1, done: submitted });
  const { stdout, stderr, stdoutBytes, stderrBytes, value, calls, queuedMs, truncated } = result ?? assert.fail();
  assert.deepEqual({ stdout, stderr, value, calls, queuedMs, truncated }, { stdout: "é", stderr: "\uFFFD", value: 1, calls: [], queuedMs: 0, truncated: { ...run.truncated, calls: false } });
  assert.deepEqual([stdoutBytes, stderrBytes], [new Uint8Array([0xc3, 0xa9]), new Uint8Array([0xff])]);
  for (const timeoutMs of [undefined, 0, Infinity]) {
    await waitBatchRun("k", { connection, timeoutMs });
    assert.deepEqual(last(), { method: "waitBatchRun", params: { key: "k" }, stdin: false, events: false });
  }
  assert.deepEqual(await cancelBatchRun("k", { connection }), { key: "k", state: "done", submitted, error: { code: "no_program", status: 422, detail: "d" } });
  assert.deepEqual(last(), { method: "cancelBatchRun", params: { key: "k" }, stdin: false, events: false });
  await assert.rejects(batchRun("k", { connection }), { code: "protocol" });
  for (const [options, location] of [[{ stdin: new Uint8Array() }, "stdin"], [{ stdin: ["a"] }, "stdin"], [{ mounts: [] }, "mounts"], [{ signal: AbortSignal.abort() }, "signal"]] as const) {
    await assert.rejects(submit("1", { connection, ...options } as never), (err) => err instanceof GaolError && err.code === "invalid" && err.errors[0]?.location === location);
  }
});

test("requests that wait for batch runs leave room for others", async (t) => {
  const socket = await fakeServer(t, async (peer) => {
    for (;;) {
      const { id, body } = await peer.next(requestKind);
      if (body.includes('"cancelBatchRun"')) peer.send(resultKind, id, JSON.stringify(queued));
    }
  });
  const connection = connect({ socket });
  const waiting = Array.from({ length: 300 }, () => waitBatchRun("k", { connection }));
  const ended = Promise.allSettled(waiting);
  await cancelBatchRun("k", { connection });
  await connection.close();
  assert((await ended).every((r) => r.status === "rejected"));
});

test("events of runs have the names and data of the HTTP API", async (t) => {
  const call = { name: "f", ms: 1, argumentsBytes: 2, resultBytes: 3, error: "" };
  const connection = { host: "a.example", address: "192.0.2.1:443", port: 443, rule: "network.rules[0]", bytesIn: 1, bytesOut: 2, durationMs: 1.5, outcome: "closed" };
  const sent: [string, unknown][] = [["call", call], ["new", 1], ["connect", { ...connection, newer: 1 }]];
  const socket = await fakeServer(t, async (peer) => {
    peer.send(resultKind, (await peer.next(requestKind)).id, JSON.stringify(sandboxInfo));
    for (const events of [sent, [["connect", { ...connection, durationMs: "1" }]] as const]) {
      const { id } = await peer.next(requestKind);
      peer.send(stdoutKind, id, "x");
      for (const [event, data] of events) peer.send(eventKind, id, JSON.stringify({ event, data }));
      peer.send(resultKind, id, JSON.stringify({ ...run, calls: [call], queuedMs: 2, truncated: { ...run.truncated, calls: true } }));
    }
  });
  const client = connect({ socket });
  t.after(() => client.close());
  const sandbox = await Sandbox.create({ connection: client });
  const events: RunEvent[] = [];
  const stream = sandbox.followRun("1");
  for await (const e of stream) events.push(e);
  const data = new Uint8Array([120]);
  assert.deepEqual(events, [{ type: "stdout", data }, { type: "call", call }, { type: "connect", connect: connection }]);
  const { calls, queuedMs, truncated } = await stream.result;
  assert.deepEqual({ calls, queuedMs, truncated }, { calls: [call], queuedMs: 2, truncated: { stdout: false, stderr: false, denials: false, calls: true } });
  await assert.rejects(sandbox.followRun("1").result, { code: "protocol" });
});

test("results are checked, and have the known fields only", () => {
  const file = { path: "/f", type: "file", size: 1, mode: "0644", modified: "2026-01-02T03:04:05Z" };
  const known = { path: "/f", type: "file", size: 1, mode: "0644", modified: new Date("2026-01-02T03:04:05Z") };
  assert.deepEqual(decode("FileList", { files: [{ ...file, pathBytes: "L/8=", newer: 1 }], truncated: false }, "x"), { files: [{ ...known, pathBytes: new Uint8Array([0x2f, 0xff]) }], truncated: false });
  assert.deepEqual(decode("FileList", { files: null, truncated: true }, "x"), { files: [], truncated: true }); // Go's empty list
  assert.deepEqual(decode("ProcessUsage", { ...usage, memoryBytes: 4 }, "x"), { ...usage, memoryBytes: 4 });
  assert.equal(decode("any", "anything", "x"), "anything");
  for (const value of [undefined, null, [], "x", { files: {} }, { files: [file] }, { files: [{ ...file, size: "1" }], truncated: false }, { files: [{ ...file, modified: 1 }], truncated: false }]) {
    assert.throws(() => decode("FileList", value, "x"), { code: "protocol" });
  }
});
