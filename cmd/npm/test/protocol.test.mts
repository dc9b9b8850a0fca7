// What a session does with a server that breaks the protocol, or is odd.
import assert from "node:assert/strict";
import test from "node:test";
import { connect, ConnectionError, GaolError, Sandbox } from "gaol";
import { call, credit, fakeServer, session } from "./fake.mjs";

const [request, cancel, stdin, creditKind, answer, failure] = [1, 2, 3, 4, 5, 6];
const [result, error, stdout, , event, callKind, abandon] = [16, 17, 18, 19, 20, 21, 22];
const window = 256 << 10;

const bad: [string, (id: number) => Buffer | string][] = [
  ["nothing", () => Buffer.alloc(0)],
  ["a short frame", () => Buffer.from([16, 0, 0, 0])],
  ["a text message", () => "text"],
  ["a client's kind", () => Buffer.from([1, 0, 0, 0, 1, 123, 125])],
  ["an unknown kind", () => Buffer.from([99, 0, 0, 0, 1])],
  ["the id 0", () => Buffer.from([16, 0, 0, 0, 0, 49])],
  ["a result that is no JSON", (id) => Buffer.from([16, 0, 0, 0, id, 123])],
  ["a result that is not UTF-8", (id) => Buffer.from([16, 0, 0, 0, id, 34, 255, 34])],
  ["an empty result", (id) => Buffer.from([16, 0, 0, 0, id])],
  ["an error without a code", (id) => Buffer.from([17, 0, 0, 0, id, 123, 125])],
  ["an error that is a list", (id) => Buffer.from([17, 0, 0, 0, id, 91, 93])],
  ["an event without a name", (id) => Buffer.from([20, 0, 0, 0, id, 123, 125])],
  ["credit for output", (id) => Buffer.from([4, 0, 0, 0, id, 1, 0, 0, 0, 1])],
  ["more credit than was used", (id) => Buffer.from([4, 0, 0, 0, id, 0, 0, 0, 0, 1])],
  ["short credit", (id) => Buffer.from([4, 0, 0, 0, id, 0])],
  ["a call without arguments", () => Buffer.from([21, 0, 0, 0, 1, 0, 0, 0, 1])],
  ["a call whose arguments are no list", () => Buffer.from([21, 0, 0, 0, 1, 0, 0, 0, 1, 123, 125])],
  ["abandon with a body", () => Buffer.from([22, 0, 0, 0, 1, 1])],
];

for (const [name, message] of bad) {
  test(`${name} ends the connection`, async (t) => {
    let closed: Promise<number> | undefined;
    const s = await session(t, await fakeServer(t, async (peer) => {
      closed = peer.closed;
      const { id } = await peer.next(request as number);
      peer.socket.send(message(id));
    }));
    await assert.rejects(s.request("listSandboxes"), (err) => err instanceof ConnectionError && err.code === "protocol");
    assert.equal(await closed, 1002);
    await assert.rejects(s.request("listSandboxes"), ConnectionError); // afterwards, too
  });
}

test("output without credit ends the connection", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    for (let i = 0; i < 6; i++) peer.send(stdout as number, id, Buffer.alloc(64 << 10));
  }));
  const never = new Promise(() => undefined);
  await assert.rejects(s.request("run", {}, { onStdout: () => never }), { code: "protocol" });
});

test("a message that is too large ends the connection", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    peer.send(result as number, id, Buffer.alloc((32 << 20) + 2000, " "));
  }));
  await assert.rejects(s.request("listSandboxes"), ConnectionError);
});

test("credit is returned for what was processed", async (t) => {
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const pieces: number[] = [];
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    for (let i = 0; i < 4; i++) peer.send(stdout as number, id, Buffer.alloc(window / 4, i));
    peer.send(event as number, id, '{"event":"log","data":{}}'); // no credit is left for output, but events have their own
    const f = await peer.next(creditKind as number);
    assert.deepEqual(f.body, credit(1, window / 4));
    peer.send(stdout as number, id, "last");
    peer.send(result as number, id, "7");
  }));
  const value = await s.request("run", {}, {
    onStdout: async (piece) => {
      await gate;
      pieces.push(piece.length);
    },
    onEvent: () => release(),
  });
  assert.equal(value, 7);
  assert.deepEqual(pieces, [window / 4, window / 4, window / 4, window / 4, 4]);
});

test("standard input waits for credit", async (t) => {
  let sent = 0;
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    let got = 0;
    while (got < window) got += (await peer.next(stdin as number)).body.length;
    assert.equal(got, window);
    await new Promise((resolve) => peer.socket.ping(undefined, undefined, resolve));
    await new Promise((resolve) => peer.socket.once("pong", resolve));
    assert.deepEqual(peer.frames, []); // the client waits
    assert(sent <= window + window / 2);
    peer.send(creditKind as number, id, credit(0, window));
    for (let f = await peer.next(stdin as number); f.body.length > 0; f = await peer.next(stdin as number)) {
      got += f.body.length;
      peer.send(creditKind as number, id, credit(0, f.body.length));
    }
    peer.send(result as number, id, JSON.stringify(got));
  }));
  function* source(): Generator<Uint8Array> {
    for (; sent < 3 * window; sent += window / 2) yield new Uint8Array(window / 2);
  }
  assert.equal(await s.request("run", {}, { stdin: source() }), 3 * window);
});

test("a program that ends does not wait for its input", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    await peer.next(stdin as number);
    peer.send(result as number, id, "1");
  }));
  async function* endless(): AsyncGenerator<string> {
    yield "first";
    await new Promise(() => undefined);
  }
  assert.equal(await s.request("run", {}, { stdin: endless() }), 1);
});

test("an error of the input ends the request", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    await peer.next(cancel as number);
    peer.send(result as number, id, "1");
  }));
  async function* failing(): AsyncGenerator<string> {
    yield "first";
    throw new Error("mine");
  }
  await assert.rejects(s.request("run", {}, { stdin: failing() }), /mine/);
});

test("an error of a handler ends the request", async (t) => {
  for (const fail of [() => { throw new Error("mine"); }, async () => Promise.reject(new Error("mine"))]) {
    const s = await session(t, await fakeServer(t, async (peer) => {
      const { id } = await peer.next(request as number);
      peer.send(stdout as number, id, "x");
      await peer.next(cancel as number);
      peer.send(error as number, id, '{"code":"canceled","status":499}');
    }));
    await assert.rejects(s.request("run", {}, { onStdout: fail }), /mine/);
  }
});

test("abort rejects with the signal's reason", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    peer.send(event as number, id, '{"event":"log","data":{}}');
    await peer.next(cancel as number);
    peer.send(result as number, id, '{"cause":"canceled"}');
  }));
  const control = new AbortController();
  const reason = new Error("mine");
  const request1 = s.request("run", {}, { signal: control.signal, onEvent: () => control.abort(reason) });
  await assert.rejects(request1, (err) => err === reason);
  await assert.rejects(s.request("run", {}, { signal: control.signal }), (err) => err === reason); // nothing is sent
});

test("errors of fleets have codes", async (t) => {
  const codes = [["sandbox_lost", 410], ["unreachable", 503, 1000], ["node_lost", 502], ["engine_unavailable", 503, 1000]] as const;
  const s = await session(t, await fakeServer(t, async (peer) => {
    for (const [code, status, retryAfterMs] of codes) peer.send(error as number, (await peer.next(request as number)).id, JSON.stringify({ code, status, retryAfterMs }));
  }));
  for (const [code, status, retryAfterMs] of codes) await assert.rejects(s.request("run"), { name: "GaolError", code, status, retryAfterMs });
});

test("a lost sandbox can be closed", async (t) => {
  const info = { id: "sb-1", created: "", expires: "", lifetimeEnd: "", isolation: "native", processes: 0 };
  const connection = connect({ socket: await fakeServer(t, async (peer) => {
    peer.send(result as number, (await peer.next(request as number)).id, JSON.stringify(info));
    peer.send(error as number, (await peer.next(request as number)).id, '{"code":"sandbox_lost","status":410}');
  }) });
  t.after(() => connection.close());
  await (await Sandbox.get("sb-1", { connection })).close();
});

test("problems are errors with their fields", async (t) => {
  const problem = { status: 429, code: "quota", detail: "too many", retryAfterMs: 5, errors: [{ message: "m", location: "l", value: 1 }, 3] };
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    peer.send(error as number, id, JSON.stringify(problem));
  }));
  await assert.rejects(s.request("listSandboxes"), (err) => {
    assert(err instanceof GaolError && !(err instanceof ConnectionError));
    const { code, status, retryAfterMs, message, errors } = err;
    assert.deepEqual({ code, status, retryAfterMs, message, errors }, { code: "quota", status: 429, retryAfterMs: 5, message: "gaol: too many", errors: [{ message: "m", location: "l", value: 1 }] });
    return true;
  });
});

test("frames of unknown requests, unknown events and unknown fields are ignored", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    peer.send(result as number, 77, "1");
    peer.send(stdout as number, 77, "1");
    peer.send(creditKind as number, 77, credit(0, 1));
    peer.send(abandon as number, 77);
    peer.send(event as number, id, '{"event":"new","data":{}}');
    peer.send(result as number, id, '{"__proto__":{"polluted":1}}');
  }));
  await s.request("listSandboxes");
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

test("no more requests are sent than the server accepts", async (t) => {
  const open = new Set<number>();
  let most = 0;
  let long = 0;
  const s = await session(t, await fakeServer(t, async (peer) => {
    const waiting: number[] = [];
    for (;;) {
      const f = await peer.next(request as number);
      open.add(f.id);
      most = Math.max(most, open.size);
      if (JSON.parse(f.body.toString()).method === "spawn") {
        long++;
        continue; // a process does not end
      }
      waiting.push(f.id);
      if (waiting.length < 32) continue;
      for (const id of waiting.splice(0)) {
        open.delete(id);
        peer.send(result as number, id, "1");
      }
    }
  }));
  for (let i = 0; i < 300; i++) s.open("spawn"); // of these, 224
  await Promise.all(Array.from({ length: 320 }, () => s.request("listSandboxes")));
  assert.equal(long, 224);
  assert.equal(most, 256);
  await s.close(); // nothing is unhandled
});

test("a request that waits can be canceled", async (t) => {
  const s = await session(t, await fakeServer(t, () => undefined));
  for (let i = 0; i < 256; i++) s.request("run").catch(() => undefined);
  const waiting = s.open("spawn");
  waiting.cancel();
  await assert.rejects(waiting.result, { code: "canceled" });
  await assert.rejects(waiting.started, { code: "canceled" });
});

test("a request that is too large is refused here", async (t) => {
  const s = await session(t, await fakeServer(t, () => undefined));
  await assert.rejects(s.request("run", { code: "x".repeat(33 << 20) }), { code: "too_large", status: 413 });
});

test("functions reply with values and errors", async (t) => {
  const replies: unknown[] = [];
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    for (let f = 1; f <= 6; f++) peer.send(callKind as number, f, call(f, [f]));
    while (replies.length < 6) {
      const f = await peer.next(answer as number, failure as number);
      replies[f.id - 1] = [f.kind, JSON.parse(f.body.toString())];
    }
    peer.send(result as number, id, "1");
  }));
  s.register((args) => args);
  s.register(async () => new Date(0));
  s.register(() => ({ bytes: Buffer.from("AB"), none: undefined }));
  s.register(() => undefined);
  s.register(() => { throw Object.assign(new Error("mine"), { code: "E_MINE" }); });
  s.register(() => { const cycle: unknown[] = []; cycle.push(cycle); return cycle; });
  await s.request("run");
  assert.deepEqual(replies, [
    [answer, [1]],
    [answer, { "\u0000date": "1970-01-01T00:00:00.000Z" }],
    [answer, { bytes: { "\u0000bytes": "QUI=" } }],
    [answer, null],
    [failure, { message: "mine", code: "E_MINE" }],
    [failure, { message: "the result cannot be encoded as JSON, or is too large", code: "ERR_RESULT" }],
  ]);
});

test("a call of a function that is gone fails", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    peer.send(callKind as number, 1, call(1, []));
    const f = await peer.next(failure as number);
    peer.send(result as number, id, f.body);
  }));
  s.unregister(s.register(() => 1));
  assert.deepEqual(await s.request("run"), { message: "the function is gone" });
});

test("abandon aborts the function's signal, and there is no reply", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    peer.send(callKind as number, 1, call(1, []));
    peer.send(abandon as number, 1);
    peer.send(callKind as number, 1, call(2, [])); // the id can be used again
    const f = await peer.next(answer as number, failure as number);
    peer.send(result as number, id, f.body);
  }));
  let aborted = false;
  s.register((_, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve((aborted = true)))));
  s.register(() => "second");
  assert.equal(await s.request("run"), "second");
  assert(aborted);
});

test("a call with an id in use ends the connection", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    await peer.next(request as number);
    peer.send(callKind as number, 1, call(1, []));
    peer.send(callKind as number, 1, call(1, []));
  }));
  let reason: unknown;
  s.register((_, signal) => new Promise(() => signal.addEventListener("abort", () => (reason = signal.reason))));
  await assert.rejects(s.request("run"), { code: "protocol" });
  assert(reason instanceof ConnectionError);
});

test("input is not read after the end of the request", async (t) => {
  const s = await session(t, await fakeServer(t, async (peer) => {
    const { id } = await peer.next(request as number);
    await peer.next(stdin as number);
    peer.send(result as number, id, "1");
  }));
  let open = 0;
  async function* endless(): AsyncGenerator<string> {
    open++;
    try {
      for (;;) {
        yield "x";
        await new Promise(setImmediate);
      }
    } finally {
      open--;
    }
  }
  await s.request("run", {}, { stdin: endless() });
  while (open > 0) await new Promise(setImmediate);
});
