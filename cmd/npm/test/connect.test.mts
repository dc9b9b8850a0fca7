// Finding a server, and what happens when it goes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { connect, ConnectionError, Sandbox, type ConnectOptions } from "gaol";
import { findBinary } from "#dist/connection/binary.js";
import { checkDefaultSocket, defaultSocket, targets } from "#dist/connection/find.js";
import { fakeServer, session, tempFolder } from "./fake.mjs";

const implicit = { kind: "socket", path: defaultSocket, implicit: true };
const own = { kind: "own", binary: undefined };

test("the server is chosen by options, then by the environment", () => {
  assert.deepEqual(targets({}, {}, 1000), [implicit]);
  assert.deepEqual(targets({}, {}, 0), [implicit, own]);
  assert.deepEqual(targets({ own: false }, {}, 0), [implicit]);
  assert.deepEqual(targets({}, { GAOL_BIN: "/g" }, 0), [implicit, { kind: "own", binary: "/g" }]);
  assert.deepEqual(targets({ own: true, binary: "/x" }, { GAOL_BIN: "/g", GAOL_SOCKET: "/s" }, 1000), [{ kind: "own", binary: "/x" }]);
  assert.deepEqual(targets({}, { GAOL_SOCKET: "/s", GAOL_URL: "http://h" }, 0), [{ kind: "socket", path: "/s", implicit: false }]);
  assert.deepEqual(targets({}, { GAOL_URL: "https://h:1/", GAOL_TOKEN: "t" }, 0), [{ kind: "url", url: "https://h:1", token: "t" }]);
  assert.deepEqual(targets({ url: "http://h", token: "u" }, { GAOL_TOKEN: "t", GAOL_SOCKET: "/s" }, 0), [{ kind: "url", url: "http://h", token: "u" }]);
  assert.deepEqual(targets({ socket: "/o" }, { GAOL_SOCKET: "/s" }, 0), [{ kind: "socket", path: "/o", implicit: false }]);
  assert.throws(() => targets({ socket: "/o", url: "http://h" }, {}, 0), /exclude each other/);
  for (const url of ["localhost:1", "ftp://h", "http://u@h", "http://h/?q", "h"]) assert.throws(() => targets({ url }, {}, 0), /want http/);
});

test("other systems are clients of a URL or a socket", () => {
  const elsewhere = (o: ConnectOptions, env = {}) => targets(o, env, 0, "darwin");
  assert.deepEqual(elsewhere({ url: "http://h" }), [{ kind: "url", url: "http://h", token: undefined }]);
  assert.deepEqual(elsewhere({}, { GAOL_URL: "http://h", GAOL_TOKEN: "t" }), [{ kind: "url", url: "http://h", token: "t" }]);
  assert.deepEqual(elsewhere({ socket: "/forwarded" }), [{ kind: "socket", path: "/forwarded", implicit: false }]);
  for (const [o, env] of [[{}, { GAOL_BIN: "/g" }], [{ own: true }, { GAOL_URL: "http://h" }], [{ own: false }, {}]] as const) {
    assert.throws(() => elsewhere(o, env), { code: "no_server", message: /^gaol: sandboxes need Linux, and this system is darwin: set GAOL_URL/ });
  }
});

test("the default socket must belong to root, in a folder of root", async (t) => {
  const folder = path.join(tempFolder(t), "gaol");
  const file = path.join(folder, "gaol.sock");
  mkdirSync(folder, { mode: 0o755 });
  checkDefaultSocket(file); // absent: connecting says so
  const server = createServer().listen(file);
  await once(server, "listening");
  t.after(() => server.close());
  checkDefaultSocket(file);
  chmodSync(folder, 0o775);
  assert.throws(() => checkDefaultSocket(file), /not trusted/);
  chmodSync(folder, 0o755);
  chownSync(file, 65534, 0);
  assert.throws(() => checkDefaultSocket(file), /not trusted/);
  chownSync(file, 0, 0);
  chownSync(folder, 65534, 0);
  assert.throws(() => checkDefaultSocket(file), /not trusted/);
  chownSync(folder, 0, 0);
  const link = path.join(folder, "link.sock");
  symlinkSync(file, link);
  assert.throws(() => checkDefaultSocket(link), /not trusted/);
});

test("the program is that given, or on PATH", (t) => {
  const folder = tempFolder(t);
  const program = path.join(folder, "gaol");
  assert.throws(() => findBinary("/none/gaol"), { code: "no_server", message: "gaol: cannot execute /none/gaol" });
  assert.throws(() => findBinary(undefined, `relative:${folder}`), /set GAOL_BIN/);
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  assert.equal(findBinary(undefined, `relative:/none:${folder}`), program);
  assert.equal(findBinary(program, ""), program);
});

test("errors name the problem and what helps", async (t) => {
  const folder = tempFolder(t);
  const stale = path.join(folder, "stale.sock");
  const server = createServer().listen(stale);
  await once(server, "listening");
  for (const socket of [path.join(folder, "none.sock"), path.join(folder, "file")]) {
    await assert.rejects(connect({ socket }).session(), { code: "no_server", message: `gaol: no server listens on ${socket}; start one with: sudo gaol serve` });
    writeFileSync(path.join(folder, "file"), ""); // the second is no socket
  }
  server.close();
  await assert.rejects(connect({ url: "http://127.0.0.1:1" }).session(), { code: "no_server", message: /connect to http:\/\/127.0.0.1:1: .*ECONNREFUSED/ });
});

test("a user who is not in the socket's group learns how to join", async (t) => {
  const folder = tempFolder(t);
  chmodSync(folder, 0o755);
  const socket = path.join(folder, "s.sock");
  const server = createServer().listen(socket);
  await once(server, "listening");
  t.after(() => server.close());
  chownSync(socket, 0, 54321);
  chmodSync(socket, 0o660);
  const program = `require("gaol").connect({ socket: ${JSON.stringify(socket)} }).session().catch((e) => console.log(e.code, e.message));`;
  const { stdout } = await node(t, program, { USER: "ann" }, 65534);
  assert.equal(stdout, `no_server gaol: you may not use the server on ${socket}: join its group with: sudo usermod -aG 54321 ann\n`);
});

test("a server of another version is named", async (t) => {
  const refuse = (status: number, body: string) => fakeServer(t, () => undefined, (_, response) => response.writeHead(status).end(body));
  const problem = (code: string, detail: string) => JSON.stringify({ code, detail });
  for (const [status, body, want] of [
    [426, problem("internal", "want a WebSocket with the subprotocol gaol.v3"), { code: "version", message: /speaks gaol.v3, this client \(gaol \d.*\) speaks gaol.v2/ }],
    [426, "?", { code: "version", message: /another protocol/ }],
    [401, problem("unauthorized", "a token is missing"), { code: "unauthorized", status: 401, message: "gaol: a token is missing" }],
    [429, problem("quota", "64 sessions"), { code: "quota", status: 429 }],
    [404, "not found", { code: "connection", message: /replied with status 404: it is no gaol server/ }],
    [200, "x".repeat(100_000), { code: "connection", message: /status 200/ }],
  ] as const) {
    await assert.rejects(connect({ socket: await refuse(status, body) }).session(), want);
  }
});

test("the end of the connection rejects everything, and the next use connects again", async (t) => {
  let clients = 0;
  const socket = await fakeServer(t, async (peer) => {
    clients++;
    const { id } = await peer.next(1);
    if (clients === 1) peer.socket.terminate();
    else peer.send(16, id, "[]");
  });
  const connection = connect({ socket });
  t.after(() => connection.close());
  const s = await connection.session();
  const pending = [s.request("listSandboxes"), s.open("spawn").started, s.open("createContext").result];
  for (const p of pending) await assert.rejects(p, (err) => err instanceof ConnectionError && err.code === "connection");
  await s.closed;
  assert(s.error instanceof ConnectionError);
  const again = await connection.session();
  assert.notEqual(again, s);
  assert.deepEqual(await again.request("listSandboxes"), []);
});

test("a request that the end of the connection cuts off is told apart from one that never began", async (t) => {
  const socket = await fakeServer(t, async (peer) => {
    const { id } = await peer.next(1);
    peer.send(20, id, '{"event":"log","data":{}}');
    peer.socket.close(1001);
  });
  const s = await session(t, socket);
  const limit = 256; // of requests without a result
  const requests = Array.from({ length: limit + 1 }, () => s.request("run"));
  const errors = (await Promise.allSettled(requests)).map((r) => (r as PromiseRejectedResult).reason as ConnectionError);
  assert(errors.every((e) => e instanceof ConnectionError && e.code === "connection"));
  assert.deepEqual(errors.map((e) => e.began), [...Array.from({ length: limit }, () => true), false]);
  await assert.rejects(s.request("run"), { began: false });
  await assert.rejects(connect({ socket: "/nowhere" }).session(), { code: "no_server", began: false });
});

test("a stopped server says so", async (t) => {
  const socket = await fakeServer(t, async (peer) => {
    await peer.next(1);
    peer.socket.close(1001);
  });
  await assert.rejects((await session(t, socket)).request("listSandboxes"), { message: "gaol: the connection to the server has ended: the server is being stopped" });
});

test("uses at the same time share one connection", async (t) => {
  let clients = 0;
  const connection = connect({ socket: await fakeServer(t, () => clients++) });
  t.after(() => connection.close());
  const sessions = await Promise.all(Array.from({ length: 10 }, () => connection.session()));
  assert.equal(new Set(sessions).size, 1);
  assert.equal(clients, 1);
});

test("after close, nothing can be used", async (t) => {
  const connection = connect({ socket: await fakeServer(t, () => undefined) });
  const s = await connection.session();
  const pending = assert.rejects(s.request("listSandboxes"), { message: "gaol: the connection was closed" });
  await Promise.all([connection.close(), connection.close()]);
  await pending;
  await assert.rejects(connection.session(), { message: "gaol: the connection was closed" });
  await assert.rejects(Sandbox.list({ connection }), ConnectionError);
});

test("an idle connection does not keep the program alive, and a request does", async (t) => {
  const socket = await fakeServer(t, async (peer) => {
    for (;;) {
      const { id, body } = await peer.next(1);
      const { method } = JSON.parse(body.toString()) as { method: string };
      if (method === "createContext") peer.send(20, id, '{"event":"started","data":{}}');
      else setImmediate(() => peer.send(16, id, '"done"'));
    }
  });
  const program = `
    const { connect } = require("gaol");
    (async () => {
      const s = await connect({ socket: ${JSON.stringify(socket)} }).session();
      const context = s.open("createContext"); // lasts longer than the program
      await context.started;
      context.keepAlive(false);
      console.log(await s.request("run"));
    })();
    process.on("exit", (code) => console.log("exit", code));`;
  const { stdout, stderr, code } = await node(t, program);
  assert.deepEqual([stdout, stderr, code], ["done\nexit 0\n", "", 0]);
});

test("a lost connection leaves no unhandled rejection", async (t) => {
  const socket = await fakeServer(t, async (peer) => {
    await peer.next(1);
    await peer.next(1);
    peer.socket.terminate();
  });
  const program = `
    const { connect } = require("gaol");
    (async () => {
      const s = await connect({ socket: ${JSON.stringify(socket)} }).session();
      s.open("spawn"); // nobody awaits it
      const p = s.open("spawn");
      p.write("x".repeat(1e6));
      await p.result.catch((e) => console.log(e.code));
      await s.closed;
    })();`;
  const { stdout, stderr, code } = await node(t, program);
  assert.deepEqual([stdout, stderr, code], ["connection\n", "", 0]);
});

/** Runs a program with this package in a new Node process. */
async function node(t: TestContext, program: string, env: NodeJS.ProcessEnv = {}, uid?: number): Promise<{ stdout: string; stderr: string; code: number }> {
  const child = spawn(process.execPath, ["--unhandled-rejections=strict", "-e", program], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"], ...(uid !== undefined && { uid }) });
  t.after(() => child.kill("SIGKILL"));
  const out = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (out.stderr += text));
  const [code] = (await once(child, "close")) as [number];
  return { ...out, code };
}
