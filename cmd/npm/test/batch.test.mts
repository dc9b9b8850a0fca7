// Batch runs on a real server, which starts nats-server beside gaol.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { after, type TestContext } from "node:test";
import { batchRun, cancelBatchRun, connect, run, submit, submitCommand, waitBatchRun, type Connection } from "gaol";
import { connection as own, serve } from "./own.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "gaol-npm-"));
const [socket, store] = [path.join(folder, "s.sock"), path.join(folder, "store")]; // the store has the queues
makeStore(store);
await serve({ after }, socket, "--store", store);
after(() => rmSync(folder, { recursive: true })); // the server has ended

/** Connects to the server until the end of the test. */
function dial(t: TestContext): Connection {
  const connection = connect({ socket });
  t.after(() => connection.close());
  return connection;
}

/** Makes a store with a link to the default image. */
function makeStore(store: string): void {
  const names = "/var/lib/gaol/names";
  const image = realpathSync(path.join(names, "default"));
  for (const name of ["images", "names"]) mkdirSync(path.join(store, name), { recursive: true });
  symlinkSync(image, path.join(store, "images", path.basename(image)));
  for (const name of readdirSync(names).filter((name) => realpathSync(path.join(names, name)) === image)) {
    symlinkSync(path.join("../images", path.basename(image)), path.join(store, "names", name));
  }
}

test("a batch run has the result of a run", async (t) => {
  const connection = dial(t);
  await assert.rejects(batchRun("k", { connection }), { code: "not_found" });
  const code = "console.log('é', process.argv[2]); process.stderr.write(Buffer.from([255, 65])); process.stdin.pipe(process.stdout); __return({ n: 7 })";
  const options = { connection, args: ["a"], stdin: "in", files: { "/workspace/b": new Uint8Array([1]) } };
  const { state, submitted } = await submit(code, { ...options, key: "k" });
  assert.equal(state, "queued");
  const done = await waitBatchRun<{ n: number }>("k", { connection: dial(t) });
  const expected = await run(code, options);
  const result = done.result ?? assert.fail(done.error?.detail);
  const comparable = { durationMs: 0, queuedMs: 0, usage: expected.usage };
  assert.deepEqual({ ...result, ...comparable }, { ...expected, ...comparable });
  assert.deepEqual([result.value?.n, result.stdout, [...result.stderrBytes]], [7, "é a\nin", [255, 65]]);
  assert.deepEqual([done.key, done.state, done.submitted, done.attempts, done.error], ["k", "done", submitted, 1, undefined]);
  assert(done.done !== undefined && done.done >= submitted);
  assert.deepEqual(await batchRun("k", { connection }), done);
  assert.deepEqual(await cancelBatchRun("k", { connection }), done);
  assert.deepEqual(await submit(code, { ...options, key: "k" }), done);
  await assert.rejects(submit("1", { connection, key: "k" }), { code: "invalid" });

  const { key } = await submitCommand("sh", ["-c", "cat; exit 4"], { connection, stdin: "text" });
  const command = await waitBatchRun(key, { connection });
  assert.deepEqual([command.result?.stdout, command.result?.exitCode], ["text", 4]);
  const none = await waitBatchRun((await submitCommand("no-such-program", [], { connection })).key, { connection });
  assert.deepEqual([none.error?.code, none.error?.status, none.result], ["no_program", 422, undefined]);
});

test("a batch run is waited for and canceled", async (t) => {
  const connection = dial(t);
  const { key } = await submit("setInterval(() => {}, 1000)", { connection, timeoutMs: Infinity });
  assert.notEqual((await waitBatchRun(key, { connection, timeoutMs: 1 })).state, "done");
  const control = new AbortController();
  const aborted = waitBatchRun(key, { connection, signal: control.signal });
  const reason = new Error("mine");
  control.abort(reason);
  await assert.rejects(aborted, (err) => err === reason);
  assert.notEqual((await batchRun(key, { connection })).state, "done");
  const waiting = waitBatchRun(key, { connection });
  const canceled = await cancelBatchRun(key, { connection });
  assert.deepEqual([canceled.state, canceled.result?.cause, canceled.result?.stdout], ["done", "canceled", ""]);
  assert.deepEqual(await waiting, canceled);
});

test("a server of this program alone has no batch runs", async () => {
  await assert.rejects(submit("1", { connection: own }), { code: "forbidden" });
});
