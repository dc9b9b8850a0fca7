import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { NodeRuntime } from "gaol";

let rt: NodeRuntime;
before(async () => void (rt = await NodeRuntime.create({ permissions: { network: "allow" } })));
after(() => rt.dispose());

/** Resolves with the output up to a text. */
function until(text: string): { onStdout: (piece: Uint8Array) => void; seen: Promise<string> } {
  let output = "";
  let found: (output: string) => void;
  const seen = new Promise<string>((resolve) => (found = resolve));
  return { seen, onStdout: (piece) => (output += new TextDecoder().decode(piece)).includes(text) && found(output) };
}

test("a process has a pid, input, output and a status", async () => {
  const { onStdout, seen } = until("<end>");
  const child = await rt.spawn("console.log('pid ' + process.pid); process.stdin.pipe(process.stdout); process.stdin.on('end', () => process.exitCode = 4)", { onStdout });
  assert.ok(child.pid > 0);
  assert.equal(child.exitCode, null);
  child.writeStdin("one ");
  child.writeStdin(new TextEncoder().encode("two <end>"));
  assert.equal(await seen, `pid ${child.pid}\none two <end>`);
  child.closeStdin();
  assert.equal(await child.wait(), 4);
  assert.equal(child.exitCode, 4);
  child.kill(); // too late, and no error
});

test("signals", async () => {
  for (const [signal, status] of [[undefined, 143], ["SIGKILL", 137], [2, 130]] as const) {
    const { onStdout, seen } = until("ready");
    const child = await rt.spawn("console.log('ready'); setInterval(() => {}, 1000)", { onStdout });
    await seen;
    child.kill(signal);
    assert.equal(await child.wait(), status);
  }
  const child = await rt.spawn("setInterval(() => {}, 1000)");
  assert.throws(() => child.kill("SIGNOTHING" as "SIGTERM"), { message: "Unknown signal: SIGNOTHING" });
  child.kill("SIGKILL");
  await child.wait();
});

test("spawnCommand returns at once", async () => {
  let stdout = "";
  const child = rt.spawnCommand("sh", ["-c", "read line; echo got $line $SIZE"], { env: { SIZE: "9" }, onStdout: (p) => (stdout += new TextDecoder().decode(p)) });
  assert.equal(typeof child.pid, "number");
  child.writeStdin("text\n");
  assert.equal(await child.wait(), 0);
  assert.equal(stdout, "got text 9\n");
  const missing = rt.spawnCommand("no-such-program");
  missing.kill();
  await assert.rejects(missing.wait(), { code: "no_program" });
});

test("options of a process", async () => {
  let stdout = "";
  const child = await rt.spawn("import { text } from 'node:stream/consumers'; console.log(await text(process.stdin), process.cwd())", { stdin: "input", cwd: "/tmp", onStdout: (p) => (stdout += new TextDecoder().decode(p)) });
  assert.equal(await child.wait(), 0);
  assert.equal(stdout, "input /tmp\n");
  const limited = await rt.spawn("setInterval(() => {}, 1000)", { timeout: 500 });
  assert.notEqual(await limited.wait(), 0);
  const control = new AbortController();
  const aborted = await rt.spawn("setInterval(() => {}, 1000)", { signal: control.signal });
  const reason = new Error("stop");
  control.abort(reason);
  await assert.rejects(aborted.wait(), (error) => error === reason);
});

const server = `
import http from "node:http";
http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  response.setHeader("X-Seen", request.headers["x-sent"] ?? "none");
  response.statusCode = request.url === "/missing" ? 404 : 200;
  response.end(request.method + " " + request.url + " " + Buffer.concat(parts));
}).listen(3000, "127.0.0.1");
`;

test("a server is found, and replies", async () => {
  assert.equal(rt.findListener({ port: 3000 }), null);
  await assert.rejects(rt.fetch(3000, { path: "/" }), { code: "not_listening" });
  const child = await rt.spawn(server);
  const listener = await rt.waitForListener({ port: 3000, host: "127.0.0.1" });
  assert.deepEqual(listener, { processId: "", host: "127.0.0.1", port: 3000 });
  assert.deepEqual(rt.findListener({ port: 3000 }), listener);
  const get = await rt.fetch(3000, { path: "/users?limit=1", headers: { "X-Sent": "yes" } });
  assert.deepEqual([get.status, get.statusText, get.headers["x-seen"], get.body], [200, "OK", "yes", "GET /users?limit=1 "]);
  const post = await rt.fetch(3000, { path: "//missing", method: "POST", body: "data" });
  assert.equal(post.body, "POST //missing data");
  assert.equal((await rt.fetch(3000, { path: "missing" })).status, 404);
  child.kill("SIGKILL");
  await child.wait();
});

test("waiting for a listener ends", async () => {
  await assert.rejects(rt.waitForListener({ port: 4000 }, { timeoutMs: 20 }), { message: "Timed out after 20ms waiting for a listener on port 4000" });
  const reason = new Error("no more");
  const control = new AbortController();
  const waiting = rt.waitForListener({ port: 4000 }, { signal: control.signal });
  control.abort(reason);
  await assert.rejects(waiting, (error) => error === reason);
  await assert.rejects(rt.waitForListener({ port: 3000, path: "/x.sock" }), { code: "invalid" });
  assert.throws(() => rt.findListener({ port: 0 }), { code: "invalid" });
});

test("a resident runner executes programs in one process", async () => {
  const runner = await rt.createResidentRunner();
  try {
    const first = await runner.exec("globalThis.count = 1; const x = 1; import os from 'node:os'; process.stdout.write(os.hostname() + process.pid); console.error('e')");
    assert.match(first.stdout, /^secure-exec\d+$/);
    assert.deepEqual([first.stderr, first.exitCode], ["e\n", 0]);
    assert.deepEqual(await runner.exec("const x = 2; console.log(++globalThis.count, x)"), { stdout: "2 2\n", stderr: "", exitCode: 0 });
    const failed = await runner.exec("console.log('before'); throw new TypeError('broken')");
    assert.deepEqual([failed.exitCode, failed.stdout], [1, "before\n"]);
    assert.match(failed.stderr, /^TypeError: broken\n/);
    const both = [runner.exec("await new Promise((r) => setTimeout(r, 50))"), runner.exec("globalThis.count = 0")] as const;
    await assert.rejects(both[1], { message: "resident runner supports one in-flight exec" });
    await both[0];
    assert.equal((await runner.exec("console.log(count)")).stdout, "2\n");
    await assert.rejects(runner.exec("for (;;);", { timeout: 300 }), { message: "resident runner timed out after 300ms" });
    await assert.rejects(runner.exec("1"), { code: "closed" });
  } finally {
    await runner.dispose();
    await runner.dispose();
  }
  const ending = await rt.createResidentRunner();
  await assert.rejects(ending.exec("process.exit(5)"), { message: "resident runner has ended with status 5" });
});

test("resources are counted", async () => {
  const { onStdout, seen } = until("ready");
  const child = await rt.spawn("import net from 'node:net'; net.createServer().listen(3100, '127.0.0.1', () => console.log('ready'))", { onStdout });
  await seen;
  const busy = await rt.getResourceSnapshot();
  assert.ok(busy.runningProcesses >= 1 && busy.openFds > 3 && busy.sockets >= 1 && busy.socketListeners >= 1 && busy.memoryBytes > 1 << 20, JSON.stringify(busy));
  assert.equal(busy.fdTables, busy.runningProcesses);
  child.kill("SIGKILL");
  await child.wait();
});
