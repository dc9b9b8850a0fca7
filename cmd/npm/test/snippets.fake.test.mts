// runInSandbox as the server sees it, and how it handles what a server sends.
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { connect, type Connection } from "gaol";
import { runInSandbox, type SnippetInput, type SnippetOptions } from "gaol/snippets";
import { fakeServer, type Peer } from "./fake.mjs";

const output = { logs: ["[log] 1"], facts: { n: 1 }, derived: {}, errors: [], durationMs: 12, timedOut: false };

const log = (line: string) => ({ event: "log", data: { line } });

/** Returns a connection to a server that calls serve for each client. */
async function connected(t: TestContext, serve: (peer: Peer) => unknown): Promise<Connection> {
  const connection = connect({ socket: await fakeServer(t, serve) });
  t.after(() => connection.close());
  return connection;
}

/** Serves the parameters of each request as its only fact. */
async function echo(peer: Peer): Promise<never> {
  for (;;) {
    const { id, body } = await peer.next(1);
    const { method, params, events } = JSON.parse(String(body));
    peer.send(16, id, JSON.stringify({ ...output, facts: { method, params, events }, problems: [], denials: [], usage: {} }));
  }
}

test("a request has what the caller gives", async (t) => {
  const connection = await connected(t, echo);
  const sent = async (input: SnippetInput, options: SnippetOptions = {}) => {
    const { facts, ...rest } = await runInSandbox(input, { connection, ...options });
    assert.deepEqual({ ...rest, facts: output.facts }, output, "other members are not part of the result");
    assert.equal(facts["method"], "runSnippet");
    assert.equal(facts["events"], options.onLog !== undefined);
    return facts["params"];
  };
  const files = [{ path: "src/main.ts", source: "1" }];
  assert.deepEqual(await sent("1"), { source: "1" });
  assert.deepEqual(await sent({ source: "" }), { source: "" });
  assert.deepEqual(await sent({ files }), { files });
  assert.deepEqual(await sent({ files, timeoutMs: 7 }), { files, timeoutMs: 7 });
  assert.deepEqual(await sent({ source: "1", timeoutMs: 7 }, { timeoutMs: 8.5 }), { source: "1", timeoutMs: 9 });
  for (const [timeoutMs, want] of [[0, 0], [-Infinity, 0], [Infinity, 60_000]] as const) assert.deepEqual(await sent("1", { timeoutMs }), { source: "1", timeoutMs: want });
  assert.deepEqual(await sent("1", { network: "public", adapter: "directive", onLog: () => undefined }), { source: "1", adapter: "directive", permissions: "public" });
  assert.deepEqual(await sent("1", { adapter: { name: "own", code: "x" }, nodeModules: "/a/../b" }), { source: "1", adapter: "own", adapterCode: "x", nodeModules: "/b" });
  assert.deepEqual(await sent("1", { lint: false }), { source: "1", noLint: true });
  assert.deepEqual(await sent("1", { lint: true }), { source: "1" });
  assert.deepEqual(await sent("1", { nodeModules: "" }), { source: "1", nodeModules: "" });
});

test("mistakes of the caller are results", async () => {
  const connection = connect({ socket: "/nowhere" }); // is not used
  const deep = [{ path: "src/main.ts", source: "1", more: 1 }];
  for (const [input, error, options] of [
    [undefined, "input: want an object"],
    [null, "input: want an object"],
    [["1"], "input: want an object"],
    [{ code: "1" }, 'input: unknown field "code"; want source, files, timeoutMs'],
    [{ source: 1 }, "source: want a string"],
    [{ source: () => 1 }, "source: want a string"],
    ["\ud800", "source: half of a surrogate pair"],
    [{ files: {} }, "files: want a list"],
    [{ files: [undefined] }, "files[0]: want an object"],
    [{ files: deep }, 'files[0]: unknown field "more"; want path, source'],
    [{ files: [{ path: 1, source: "" }] }, "files[0].path: want a string"],
    [{ files: [{ path: "src/main.ts" }] }, "files[0].source: want a string"],
    ["1", "timeoutMs: want a number", { timeoutMs: NaN }],
    ["1", "timeoutMs: want a number", { timeoutMs: "5" }],
    ["1", 'options: unknown field "timeoutMS"; did you mean "timeoutMs"?', { timeoutMS: 5 }],
    ["1", 'network: want "public" or nothing', { network: "private" }],
    ["1", "adapter: want an object", { adapter: 1 }],
    ["1", "adapter.code: want a string", { adapter: { name: "a" } }],
  ] as [SnippetInput, string, SnippetOptions?][]) {
    const got = await runInSandbox(input, { connection, ...options });
    assert.deepEqual(got, { logs: [], facts: {}, derived: {}, errors: [error], durationMs: 0, timedOut: false });
  }
  const { errors } = await runInSandbox(null as never, { connection, signal: AbortSignal.abort() });
  assert.deepEqual(errors, ["input: want an object"]);
  assert.deepEqual((await runInSandbox("1", { connection, signal: AbortSignal.abort() })).errors, ["sandbox: aborted by caller signal"]);
  await assert.rejects(runInSandbox("1", { connection }), { code: "no_server" });
});

test("errors of the server", async (t) => {
  const problems = [
    { code: "invalid", status: 422, detail: "adapter: unknown" },
    { code: "too_large", status: 413, detail: "too large" },
    { code: "forbidden", status: 403, detail: "no" },
    { code: "quota", status: 429, detail: "later", retryAfterMs: 5 },
    { code: "canceled", status: 499, detail: "canceled" },
    { code: "internal", status: 500 },
  ];
  const connection = await connected(t, async (peer) => {
    for (const problem of problems) peer.send(17, (await peer.next(1)).id, JSON.stringify(problem));
  });
  assert.deepEqual((await runInSandbox("1", { connection })).errors, ["adapter: unknown"]);
  assert.deepEqual((await runInSandbox("1", { connection })).errors, ["too large"]);
  for (const { code } of problems.slice(2)) await assert.rejects(runInSandbox("1", { connection }), { name: "GaolError", code });
  assert.match((await runInSandbox("x".repeat(33 << 20), { connection })).errors[0] ?? "", /the limit is 33554432/);
});

test("results that are not those of snippets are errors", async (t) => {
  const wrong = [null, [], {}, { ...output, logs: [1] }, { ...output, facts: null }, { ...output, derived: [] }, { ...output, errors: "x" }, { ...output, durationMs: "1" }, { ...output, timedOut: 0 }];
  const connection = await connected(t, async (peer) => {
    for (const value of wrong) peer.send(16, (await peer.next(1)).id, JSON.stringify(value));
  });
  for (const _ of wrong) await assert.rejects(runInSandbox("1", { connection }), { code: "protocol" });
});

test("logs arrive one after the other, and before the result", async (t) => {
  const connection = await connected(t, async (peer) => {
    const { id } = await peer.next(1);
    for (const event of [log("[log] a"), log("[log] b"), { ...log("c"), event: "other" }]) peer.send(20, id, JSON.stringify(event));
    peer.send(16, id, JSON.stringify(output));
    const second = await peer.next(1);
    peer.send(20, second.id, JSON.stringify(log("[log] a")));
    await peer.next(2);
    peer.send(16, second.id, JSON.stringify(output));
    const third = await peer.next(1);
    peer.send(20, third.id, '{"event":"log","data":{"line":1}}');
    await peer.next(2);
    peer.send(16, third.id, JSON.stringify(output));
  });
  const seen: string[] = [];
  const onLog = async (line: string) => {
    seen.push(`begin ${line}`);
    await new Promise(setImmediate);
    seen.push(`end ${line}`);
  };
  assert.deepEqual(await runInSandbox("1", { connection, onLog }), output);
  assert.deepEqual(seen, ["begin [log] a", "end [log] a", "begin [log] b", "end [log] b"]);
  const reason = new Error("enough");
  const thrown = runInSandbox("1", { connection, onLog: () => Promise.reject(reason) });
  await assert.rejects(thrown, reason);
  await assert.rejects(runInSandbox("1", { connection, onLog: () => undefined }), { code: "protocol" });
});

test("an aborted signal cancels the request, whose result stays", async (t) => {
  const control = new AbortController();
  const late = new AbortController();
  const ended = { ...output, errors: ["sandbox: aborted by caller signal"] };
  const connection = await connected(t, async (peer) => {
    const first = await peer.next(1);
    control.abort();
    assert.equal((await peer.next(2)).id, first.id);
    peer.send(16, first.id, JSON.stringify(ended));
    const second = await peer.next(1);
    late.abort();
    await peer.next(2);
    peer.send(17, second.id, JSON.stringify({ code: "canceled", status: 499 }));
  });
  assert.deepEqual(await runInSandbox("1", { connection, signal: control.signal }), ended);
  assert.deepEqual(await runInSandbox("1", { connection, signal: late.signal }), { logs: [], facts: {}, derived: {}, errors: ended.errors, durationMs: 0, timedOut: false });
});
