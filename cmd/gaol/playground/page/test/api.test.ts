import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import { after, test } from "node:test";
import type { AddressInfo } from "node:net";
import { ApiError, fetchOffer, messageOf, retry, run } from "../src/api.js";

const program = { files: [{ path: "src/main.ts", source: "1" }], timeoutMs: 5000 };
const result = { logs: ["[log] a"], facts: { x: 1 }, derived: {}, errors: [], durationMs: 7, timedOut: false };
const servers: Server[] = [];

// The page's requests are relative to its address. They go to a server of the test.
async function serve(listener: RequestListener): Promise<void> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  globalThis.fetch = (url, init) => realFetch(new URL(String(url), `http://127.0.0.1:${port}/`), init);
}

const realFetch = globalThis.fetch;
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

const event = (type: string, data: unknown): string => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
const attempt = (onLine: (line: string) => void = () => undefined, signal = new AbortController().signal, token = ""): ReturnType<typeof run> =>
  run(program, token, signal, onLine);

test("a run streams its lines, then its result", async () => {
  let body = "";
  await serve((req, res) => {
    req.on("data", (data) => (body += data));
    req.on("end", () => {
      assert.equal(req.headers.accept, "text/event-stream");
      assert.equal(req.headers.authorization, "Bearer secret");
      res.writeHead(200, { "Content-Type": "text/event-stream" });
      res.write(event("log", { line: "[log] é" }));
      res.end(event("result", { ...result, problems: [], denials: [] }));
    });
  });
  const lines: string[] = [];
  const got = await attempt((line) => lines.push(line), undefined, "secret");
  assert.deepEqual(JSON.parse(body), program);
  assert.deepEqual(lines, ["[log] é"]);
  assert.deepEqual(got, { ...result, problems: [], denials: [] });
});

test("a line is passed on before the run ends", async () => {
  let end = (): void => undefined;
  await serve((_, res) => {
    res.writeHead(200);
    res.write(event("log", { line: "first" }));
    end = () => void res.end(event("result", result));
  });
  const got = await attempt((line) => line === "first" && end());
  assert.equal(got.durationMs, 7);
});

test("stopping closes the connection", async () => {
  const controller = new AbortController();
  let closed: Promise<unknown> | undefined;
  await serve((_, res) => {
    closed = new Promise((resolve) => res.on("close", resolve));
    res.writeHead(200);
    res.write(event("log", { line: "first" }));
  });
  await assert.rejects(attempt(() => controller.abort(), controller.signal), { name: "AbortError" });
  await closed;
});

test("a lost connection is reported", async () => {
  await serve((_, res) => {
    res.writeHead(200);
    res.write(event("log", { line: "first" }));
    setImmediate(() => res.destroy());
  });
  await assert.rejects(attempt(), /connection to the server was lost/);
  await serve((_, res) => void res.end(event("log", { line: "no result" })));
  await assert.rejects(attempt(), /connection to the server was lost/);
  await serve((req) => void req.destroy());
  await assert.rejects(attempt(), /cannot be reached/);
});

test("an answer that is no JSON, or too long, is reported", async () => {
  await serve((_, res) => void res.end("event: result\ndata: {\n\n"));
  await assert.rejects(attempt(), /cannot be read/);
  await serve((_, res) => void res.end("x".repeat((16 << 20) + 1)));
  await assert.rejects(attempt(), /cannot be read/);
});

test("errors of the server are in plain words", async () => {
  await serve((_, res) => {
    res.writeHead(429, { "Retry-After": "17", "Content-Type": "application/problem+json" });
    res.end('{"detail":"rate"}');
  });
  await assert.rejects(attempt(), (error) => error instanceof ApiError && error.status === 429 && /Try again in 17 seconds/.test(error.message));
  const messages: [number, string, RegExp][] = [
    [400, "files is missing", /did not accept the program: files is missing/],
    [401, "", /token/],
    [403, "origin", /does not allow this: origin/],
    [413, "", /too large/],
    [503, "", /not available now/],
    [500, "", /failed\./],
    [418, "", /status 418/],
  ];
  for (const [status, detail, want] of messages) {
    assert.match(messageOf(status, detail, null), want);
  }
});

test("an error that follows output is reported", async () => {
  await serve((_, res) => void res.end(event("log", { line: "a" }) + event("error", { status: 503, detail: "stopping" })));
  await assert.rejects(attempt(), (error) => error instanceof ApiError && error.status === 503 && /not available/.test(error.message));
});

test("Retry-After has seconds or a date", () => {
  assert.equal(retry("1"), "Try again in 1 second.");
  assert.equal(retry("3600"), "Try again in 60 minutes.");
  assert.match(retry(new Date(Date.now() + 30_000).toUTCString()), /Try again in (29|30) seconds/);
  for (const header of [null, "", "-1", "0", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"]) {
    assert.equal(retry(header), "Try again in a moment.");
  }
});

test("an offer has what the server leaves out", async () => {
  await serve((_, res) => void res.end('{"adapters":["none","directive"],"adapter":"directive"}'));
  const offer = await fetchOffer("");
  assert.deepEqual([offer.adapters, offer.adapter, offer.timeoutMs.max], [["none", "directive"], "directive", 10_000]);
});
