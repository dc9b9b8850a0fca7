// Runs, evaluations, contexts and processes on a real server.
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { evaluate, GaolError, run, Sandbox, type LogLine, type RunEvent } from "gaol";
import { connection, sandbox } from "./own.mjs";

test("run returns output, the value and the exit status", async (t) => {
  const sb = await sandbox(t, { env: { A: "1" }, files: { "/workspace/x.txt": "text", "/workspace/b": new Uint8Array([255, 0]) } });
  const r = await sb.run<{ n: number }>("console.log(process.env.A, process.argv[2]); console.error('é'); __return({ n: 7 })", { args: ["arg"] });
  assert.deepEqual([r.stdout, r.stderr, r.exitCode, r.cause, r.signal, r.value], ["1 arg\n", "é\n", 0, "", "", { n: 7 }]);
  const files = await sb.run("const fs = require('fs'); process.stdout.write(fs.readFileSync('x.txt') + fs.readFileSync('b').length)", { format: "cjs" });
  assert.equal(files.stdout, "text2");
  const failed = await sb.run("process.exitCode = 3; throw new TypeError('mine')");
  assert.deepEqual([failed.exitCode, failed.error?.name, failed.error?.message, "value" in failed], [1, "TypeError", "mine", false]);
  assert.equal((await sb.exec("process.exit(5)")).exitCode, 5);
  assert.equal((await sb.command("sh", ["-c", "echo $0", "x"])).stdout, "x\n");
  await assert.rejects(sb.command("no-such-program"), { code: "no_program" });
});

test("the cause says why a run was ended", async (t) => {
  const sb = await sandbox(t, { limits: { memoryBytes: 64 << 20 } });
  const [timeout, memory, signal] = await Promise.all([
    sb.run("setInterval(() => {}, 1000)", { timeoutMs: 300 }),
    sb.run("const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))"),
    sb.run("process.kill(process.pid, 'SIGTERM')"),
  ]);
  assert.equal(timeout.cause, "timeout");
  assert.equal(memory.cause, "memory");
  assert.deepEqual([signal.cause, signal.signal, signal.exitCode], ["signal", "SIGTERM", 143]);
});

test("output that is not UTF-8 is kept as bytes, and the limit cuts it", async (t) => {
  const sb = await sandbox(t, { limits: { outputBytes: 1000 } });
  const r = await sb.run("process.stdout.write(Buffer.from([255, 65])); process.stderr.write('x'.repeat(5000))");
  assert.deepEqual([...r.stdoutBytes], [255, 65]);
  assert.equal(r.stdout, "\uFFFDA");
  assert.equal(r.stderr.length, 1000);
  assert.deepEqual(r.truncated, { stdout: false, stderr: true, denials: false, calls: false });
  let streamed = 0;
  const all = await sb.run("process.stdout.write('x'.repeat(5000))", { onStdout: (piece) => void (streamed += piece.length) });
  assert.deepEqual([streamed, all.stdout.length, all.truncated.stdout], [5000, 1000, true]);
});

test("a slow reader of output makes the program wait", async (t) => {
  const sb = await sandbox(t);
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  let seen = 0;
  const total = 4 << 20;
  const running = sb.run(`process.stdout.write(Buffer.alloc(${total}, 'x'), () => require('fs').writeFileSync('done', ''))`, {
    format: "cjs",
    onStdout: async (piece) => {
      await gate;
      seen += piece.length;
    },
  });
  const written = await sb.run("await new Promise((r) => setTimeout(r, 300)); __return(require('fs').existsSync('done'))", { format: "esm" }).then(
    (r) => r.value ?? false,
  );
  assert.equal(written, false);
  release();
  const r = await running;
  assert.deepEqual([seen, r.stdout.length, r.exitCode], [total, total, 0]);
});

test("standard input is text, bytes or a stream", async (t) => {
  const sb = await sandbox(t);
  async function* pieces(): AsyncGenerator<Uint8Array | string> {
    for (let i = 0; i < 40; i++) yield i % 2 === 0 ? new Uint8Array(50_000) : "x".repeat(50_000);
  }
  for (const [stdin, size] of [["abc", 3], [new Uint8Array(7), 7], [pieces(), 2_000_000], [new Blob(["web"]).stream(), 3]] as const) {
    assert.equal((await sb.command("wc", ["-c"], { stdin })).stdout.trim(), String(size));
  }
  const early = await sb.command("head", ["-c", "1"], { stdin: endless() });
  assert.equal(early.stdout, "y");
});

async function* endless(): AsyncGenerator<string> {
  for (;;) {
    yield "y".repeat(10_000);
    await new Promise(setImmediate);
  }
}

test("abort ends a run, and rejects with the reason", async (t) => {
  const sb = await sandbox(t);
  const control = new AbortController();
  const reason = new Error("mine");
  const running = sb.run("console.log('up'); setInterval(() => {}, 1000)", { signal: control.signal, onStdout: () => control.abort(reason) });
  await assert.rejects(running, (err) => err === reason);
  await assert.rejects(sb.run("1", { signal: AbortSignal.abort(reason) }), (err) => err === reason);
  await assert.rejects(Sandbox.create({ connection, signal: AbortSignal.abort(reason) }), (err) => err === reason);
  const creating = new AbortController();
  const created = Sandbox.create({ connection, signal: creating.signal });
  creating.abort(reason);
  await assert.rejects(created, (err) => err === reason);
  assert.equal((await Sandbox.list({ connection })).length, 1);
});

test("invalid options are errors that name the field", async (t) => {
  const sb = await sandbox(t);
  await assert.rejects(sb.run("1", { timeoutMs: -1 }), (err) => err instanceof GaolError && err.code === "invalid" && err.errors[0]?.location === "timeoutMs");
  await assert.rejects(sb.run("1", { permissions: { network: "allow" } }), { code: /invalid|forbidden/ });
  await assert.rejects(Sandbox.create({ connection, permissions: { network: { rules: [{ mode: "allow", patterns: ["x"] }] } } }), { code: "invalid" });
});

test("the isolation is a name, or a path for a server of this program alone", async (t) => {
  const sb = await sandbox(t, { isolation: "native" });
  assert.deepEqual((await Sandbox.list({ connection })).map((info) => [info.id, info.isolation]), [[sb.id, "native"]]);
  assert.equal((await run("__return(1)", { connection, isolation: "native" })).value, 1);
  assert.equal((await evaluate("1", { connection, isolation: "native" })).value, 1);
  for (const isolation of ["docker", "oci=relative", "oci=/nosuch/runtime"]) {
    const invalid = (err: unknown): boolean => err instanceof GaolError && err.code === "invalid" && err.message.includes("isolation");
    await assert.rejects(Sandbox.create({ connection, isolation }), invalid);
    await assert.rejects(run("1", { connection, isolation }), invalid);
    await assert.rejects(run("1", { connection, isolation, onStdout: () => undefined }), invalid);
    await assert.rejects(evaluate("1", { connection, isolation }), invalid);
  }
});

test("one-shot runs and evaluations", async () => {
  assert.equal((await run<number>("__return(6 * 7)", { connection })).value, 42);
  assert.equal((await run("process.stdin.pipe(process.stdout)", { connection, stdin: "in" })).stdout, "in");
  let out = "";
  const r = await run<number>("console.log('x'); __return(double(4))", { connection, onStdout: (p) => void (out += p.length), globals: { double: (n: number) => n * 2 } });
  assert.deepEqual([out, r.value], ["2", 8]);
  const e = await evaluate<number>("const a = [1, 2, 3]; a.length", { connection });
  assert.deepEqual([e.error, e.value], [null, 3]);
  assert.deepEqual(await Sandbox.list({ connection }), []);
});

test("evaluations have logs, errors and calls", async (t) => {
  const sb = await sandbox(t);
  const lines: LogLine[] = [];
  const e = await sb.evaluate<number>("```js\nconsole.log('a', 1)\nconst y = await twice(n)\ny\n```", {
    globals: { n: 21, twice: async (n: number) => n * 2 },
    onLog: (line) => void lines.push(line),
  });
  assert.deepEqual([e.error, e.value, e.calls[0]?.name, lines[0]?.text], [null, 42, "twice", "a 1"]);
  const failed = await sb.evaluate("null.x");
  assert.equal(failed.error?.name, "TypeError");
});

test("a context keeps declarations", async (t) => {
  const sb = await sandbox(t);
  const context = await sb.createContext({ globals: { add: (a: number, b: number) => a + b }, lastValue: true });
  await context.evaluate("let n = add(1, 2)");
  assert.equal((await context.evaluate<number>("n + k", { globals: { k: 4 } })).value, 7);
  assert.equal((await context.evaluate<number>("_ * 2")).value, 14);
  assert((await context.complete("proce")).names.includes("process"));
  const aborted = context.evaluate("for (;;);", { signal: AbortSignal.timeout(200) });
  await assert.rejects(aborted, { name: "TimeoutError" });
  await context.close();
  await context.close();
  assert.equal(typeof (await context.ended).reason, "string");
  await assert.rejects(context.evaluate("1"), { code: /closed|not_found/ });
  const alive = setInterval(() => undefined, 1000); // a context does not keep this process alive
  t.after(() => clearInterval(alive));
  const exits = await sb.createContext();
  await exits.evaluate("process.exit(3)");
  assert.equal((await exits.ended).exitCode, 3);
});

test("events of a run", async (t) => {
  const sb = await sandbox(t, { globals: { f: () => 1 }, permissions: { fs: { default: "allow", rules: [{ mode: "deny", paths: ["/workspace/secret/**"] }] } } });
  const events: RunEvent[] = [];
  const stream = sb.followRun<number>("console.log('out'); console.error('err'); f(); __return(2)");
  for await (const e of stream) events.push(e);
  assert.deepEqual(events.map((e) => e.type).sort(), ["call", "stderr", "stdout"]);
  assert.equal((await stream.result).value, 2);
  for await (const e of sb.followRun("setInterval(() => console.log('x'), 10)")) {
    assert.equal(e.type, "stdout");
    break; // ends the run
  }
  const e = sb.followEvaluate("console.log(1); 2");
  for await (const { type } of e) assert.equal(type, "log");
  assert.equal((await e.result).value, 2);
  const refused = sb.followRun("1", { timeoutMs: -1 });
  await assert.rejects(async () => { for await (const _ of refused) assert.fail(); }, { code: "invalid" });
  while ((await sb.info()).processes > 0) await delay(10); // the run ends soon after the loop
});

test("a process has streams, signals and a result", async (t) => {
  const sb = await sandbox(t);
  const p = await sb.spawnCode("process.on('SIGUSR2', () => console.log('usr2')); process.stdin.on('data', (d) => console.log('got ' + d)).on('end', () => process.exit(4))");
  assert(p.pid > 0);
  const lines = p.stdout.setEncoding("utf8")[Symbol.asyncIterator]();
  p.stdin.write("one");
  assert.equal((await lines.next()).value, "got one\n");
  await p.signal("SIGUSR2");
  assert.equal((await lines.next()).value, "usr2\n");
  p.stdin.end();
  const r = await p.wait();
  assert.deepEqual([r.exitCode, r.cause, r.stdout], [4, "", ""]);
  await assert.rejects(p.signal("SIGTERM"), { code: /closed|not_found/ });
  p.stdin.write("late"); // is dropped
  const killed = await sb.spawn("sleep", ["1000"]);
  killed.kill();
  assert.equal((await killed.wait()).signal, "SIGKILL");
  await assert.rejects(sb.spawn("no-such-program"), { code: "no_program" });
  assert.equal((await (await sb.spawnCode("process.exit(typeof require === 'function' ? 5 : 6)", { format: "detect" })).wait()).exitCode, 5);
  const control = new AbortController();
  const aborted = await sb.spawn("sleep", ["1000"], { signal: control.signal });
  control.abort();
  await assert.rejects(aborted.wait(), { name: "AbortError" });
});

test("a process with a terminal can be resized", async (t) => {
  const sb = await sandbox(t);
  const p = await sb.spawn("sh", ["-c", "stty size; read x; stty size"], { terminal: { rows: 10, cols: 20 } });
  const text = p.stdout.setEncoding("utf8")[Symbol.asyncIterator]();
  assert.match((await text.next()).value as string, /10 20/);
  await p.resize({ rows: 30, cols: 40 });
  p.stdin.write("\n");
  let rest = "";
  for await (const piece of { [Symbol.asyncIterator]: () => text }) rest += piece as string;
  assert.match(rest, /30 40/);
  assert.equal((await p.wait()).exitCode, 0);
});

test("a paused sandbox starts nothing until it is resumed", async (t) => {
  const sb = await sandbox(t);
  const p = await sb.spawn("cat");
  await sb.pause();
  assert.equal((await sb.info()).paused, true);
  await assert.rejects(sb.run("1"), { code: "paused", status: 409 });
  await sb.resume();
  assert.equal((await sb.info()).paused, false);
  p.stdin.end("text");
  assert.equal((await p.wait()).exitCode, 0);
  assert.equal((await sb.run<number>("__return(1)")).value, 1);
});

test("many runs at once, and nothing stays", async (t) => {
  const sb = await sandbox(t);
  const values = await Promise.all(Array.from({ length: 100 }, async (_, i) => (await sb.run<number>(`__return(${i})`)).value));
  assert.deepEqual(values, Array.from({ length: 100 }, (_, i) => i));
  assert.equal((await sb.info()).processes, 0);
});

test("close is idempotent, and everything fails afterwards", async (t) => {
  const sb = await sandbox(t);
  let up = (): void => undefined;
  const started = new Promise<void>((resolve) => (up = resolve));
  const running = sb.run("console.log('up'); setInterval(() => {}, 1000)", { onStdout: () => up() }).then((r) => r.cause, (err: GaolError) => err.code);
  await started;
  await Promise.all([sb.close(), sb.close()]);
  assert.match(await running, /canceled|closed/);
  await sb[Symbol.asyncDispose]();
  await assert.rejects(sb.run("1"), { code: "closed" });
  await assert.rejects(sb.files.read("/workspace/x"), { code: /closed|not_found/ });
});
