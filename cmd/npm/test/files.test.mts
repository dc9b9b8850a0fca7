// Files, snapshots and ports on a real server.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import test from "node:test";
import { listSnapshots, removeSnapshot, Sandbox } from "gaol";
import { connection, sandbox } from "./own.mjs";

test("files are read and written as text, bytes and streams", async (t) => {
  const sb = await sandbox(t);
  const { files } = sb;
  const info = await files.write("/workspace/a/b.txt", "héllo", { createParents: true, mode: "600" });
  assert.deepEqual([info.type, info.size, info.mode, info.path], ["file", 6, "0600", "/workspace/a/b.txt"]);
  assert(Math.abs(info.modified.getTime() - Date.now()) < 3600_000);
  assert.equal(await files.readText("/workspace/a/b.txt"), "héllo");
  const bytes = new Uint8Array(8 << 20).map((_, i) => i * 7);
  await files.write("/workspace/large", Readable.from([bytes.subarray(0, 5), bytes.subarray(5)]));
  assert(Buffer.from(bytes).equals(await files.read("/workspace/large")));
  assert(Buffer.from(bytes).equals(await buffer(files.readStream("/workspace/large"))));
  await assert.rejects(files.read("/workspace/large", { maxBytes: 1000 }), { code: "too_large" });
  await assert.rejects(files.read("/workspace/none"), { code: "not_found" });
  await assert.rejects(text(files.readStream("/workspace/none")), { code: "not_found" });
  await assert.rejects(files.write("/workspace/x/y", "1"), { code: "not_found" });
  await assert.rejects(files.write("relative", "1"), { code: "invalid" });
  assert.deepEqual([await files.exists("/workspace/a"), await files.exists("/workspace/none")], [true, false]);
  await files.write("/workspace/empty", "");
  assert.equal((await files.read("/workspace/empty")).length, 0);
});

test("an upload that fails changes nothing", async (t) => {
  const { files } = await sandbox(t);
  await files.write("/workspace/f", "old");
  async function* failing(): AsyncGenerator<string> {
    yield "new";
    throw new Error("mine");
  }
  await assert.rejects(files.write("/workspace/f", failing()), /mine/);
  assert.equal(await files.readText("/workspace/f"), "old");
});

test("folders are listed, made, moved and removed", async (t) => {
  const { files } = await sandbox(t);
  await files.makeDir("/workspace/d/e", { createParents: true });
  await files.write("/workspace/d/f", "1");
  const list = await files.list("/workspace", { recursive: true });
  assert.deepEqual(list.files.map((f) => [f.path, f.type]).sort(), [["/workspace/d", "folder"], ["/workspace/d/e", "folder"], ["/workspace/d/f", "file"]]);
  assert.equal((await files.list("/workspace", { recursive: true, limit: 1 })).truncated, true);
  await files.move("/workspace/d/f", "/workspace/g");
  assert.equal(await files.readText("/workspace/g"), "1");
  await assert.rejects(files.remove("/workspace/none"), { code: "not_found" });
  await files.remove("/workspace/d", { recursive: true });
  assert.equal(await files.exists("/workspace/d"), false);
});

test("names that are not UTF-8, and links", async (t) => {
  const sb = await sandbox(t);
  const path = Buffer.from("/workspace/\xff", "latin1");
  await sb.files.write(path, "odd");
  assert.equal(await sb.files.readText(path), "odd");
  const [listed] = (await sb.files.list("/workspace")).files;
  assert.deepEqual(listed?.pathBytes, new Uint8Array(path));
  await sb.command("ln", ["-s", "target", "/workspace/link"]);
  assert.equal((await sb.files.stat("/workspace/link", { links: true })).target, "target");
});

test("archives", async (t) => {
  const sb = await sandbox(t);
  await sb.files.write("/workspace/d/f", "content", { createParents: true });
  const tar = await buffer(sb.files.readTar("/workspace/d"));
  assert.deepEqual(await sb.files.writeTar("/workspace/copy", tar, { createParents: true }), { entries: 1, bytes: 7 });
  assert.equal(await sb.files.readText("/workspace/copy/f"), "content");
});

test("a stream that is not read makes the server wait, and can be left", async (t) => {
  const sb = await sandbox(t);
  await sb.files.write("/workspace/large", new Uint8Array(8 << 20));
  const stream = sb.files.readStream("/workspace/large");
  for await (const piece of stream) {
    assert((piece as Uint8Array).length > 0);
    break;
  }
  assert(stream.destroyed);
  assert.equal((await sb.files.stat("/workspace/large")).size, 8 << 20);
});

test("snapshots", async (t) => {
  const sb = await sandbox(t);
  await sb.files.write("/workspace/f", "kept");
  const name = `npm-test-${process.pid}`;
  t.after(() => removeSnapshot(name, { connection }).catch(() => undefined));
  assert.equal((await sb.snapshot(name)).name, name);
  await assert.rejects(sb.snapshot(name), { code: "conflict" });
  assert((await listSnapshots({ connection })).some((s) => s.name === name));
  const copy = await sandbox(t, { snapshot: name });
  assert.equal(await copy.files.readText("/workspace/f"), "kept");
  await copy.close();
  await removeSnapshot(name, { connection });
  await assert.rejects(removeSnapshot(name, { connection }), { code: "not_found" });
});

const listening = { network: { rules: [{ mode: "allow", operations: ["listen"], patterns: ["tcp://localhost:*"] }] } } as const;

test("fetch sends requests to a server in the sandbox", async (t) => {
  const sb = await sandbox(t, { permissions: listening });
  const server = await sb.spawnCode(`
    const http = require("http");
    http.createServer((request, response) => {
      if (request.url === "/odd") return response.socket.end("HTTP/1.1 999 Odd\\r\\n\\r\\n");
      if (request.url === "/garbage") return response.socket.end("garbage\\r\\n\\r\\n");
      if (request.url === "/cut") return response.socket.end("HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\nhalf");
      if (request.url === "/empty") return response.writeHead(204).end();
      if (request.url === "/never") return;
      response.setHeader("x-seen", [request.method, request.url, request.headers.host, request.headers["content-length"] ?? "chunked", request.headers["x-mine"]].join(" "));
      response.setHeader("set-cookie", ["a=1", "b=2"]);
      request.pipe(response);
    }).listen(3000, "127.0.0.1");`);
  assert.equal(await sb.waitForListener(3000), true);
  assert.deepEqual(await sb.listeners(), [{ address: "127.0.0.1", port: 3000 }]);
  const posted = await sb.fetch(3000, "/p?q=1", { method: "POST", body: "body", headers: { "x-mine": "m" } });
  assert.deepEqual([posted.status, posted.headers.get("x-seen"), posted.headers.getSetCookie(), await posted.text()], [200, "POST /p?q=1 localhost:3000 4 m", ["a=1", "b=2"], "body"]);
  const large = Buffer.alloc(3 << 20, "x");
  const streamed = await sb.fetch(3000, new Request("http://any/s", { method: "PUT", body: new Blob([large]).stream(), duplex: "half" } as RequestInit));
  assert.equal(streamed.headers.get("x-seen"), "PUT /s localhost:3000 chunked");
  assert(large.equals(Buffer.from(await streamed.arrayBuffer())));
  assert.equal((await sb.fetch(3000, "/empty")).status, 204);
  assert.equal((await sb.fetch(3000, "/x", { method: "HEAD" })).status, 200);
  for (const path of ["/odd", "/garbage"]) await assert.rejects(sb.fetch(3000, path), { code: "bad_gateway" });
  await assert.rejects((await sb.fetch(3000, "/cut")).text());
  await assert.rejects(sb.fetch(3000, "/never", { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
  await assert.rejects(sb.fetch(3001, "/"), { code: "not_listening" });
  assert.equal(await sb.waitForListener(3001, { timeoutMs: 50 }), false);
  server.kill();
  await server.wait();
});

test("dial connects in both directions", async (t) => {
  const sb = await sandbox(t, { permissions: listening });
  const server = await sb.spawnCode(`
    require("net").createServer({ allowHalfOpen: true }, (socket) => {
      let size = 0;
      socket.on("data", (d) => (size += d.length)).on("end", () => socket.end("got " + size));
    }).listen(4000, "127.0.0.1");`);
  await sb.waitForListener(4000);
  const connections = await Promise.all(Array.from({ length: 4 }, () => sb.dial(4000)));
  const replies = await Promise.all(connections.map(async (c, i) => {
    Readable.from(Array.from({ length: 10 + i }, () => new Uint8Array(100_000))).pipe(c);
    return text(c);
  }));
  assert.deepEqual(replies, ["got 1000000", "got 1100000", "got 1200000", "got 1300000"]);
  const left = await sb.dial(4000);
  left.destroy();
  const before = await sb.dial(4000);
  const closed = new Promise<void>((resolve) => before.once("error", () => resolve()).once("close", () => resolve()));
  server.kill();
  before.resume();
  await closed;
});

test("usage counts what a sandbox has", async (t) => {
  const sb = await sandbox(t);
  const p = await sb.spawn("sleep", ["1000"]);
  const usage = await sb.usage();
  assert.equal(usage.runningProcesses, 1);
  assert(usage.openFds >= 3 && usage.memoryBytes > 0);
  await p[Symbol.asyncDispose]();
  assert.equal((await sb.usage()).runningProcesses, 0);
});

test("a detached sandbox outlives its connection object", async (t) => {
  const sb = await sandbox(t, { detached: true });
  await sb.files.write("/workspace/f", "1");
  const again = await Sandbox.get(sb.id, { connection });
  assert.equal(await again.files.readText("/workspace/f"), "1");
  await again.close();
  await assert.rejects(Sandbox.get(sb.id, { connection }), { code: "not_found" });
  await sb.close(); // it has ended before
});
