import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { GaolError, NodeRuntime } from "gaol";

let rt: NodeRuntime;
before(async () => void (rt = await NodeRuntime.create({ env: { COLOR: "red" }, files: { "/workspace/data.json": '{"n":7}', "/app/data/raw": new Uint8Array([0, 255]) } })));
after(() => rt.dispose());

test("run returns output, status and value", async () => {
  assert.deepEqual(await rt.run<{ sum: number }>("console.log('hi'); console.error('oh'); __return({ sum: 3 });"), { stdout: "hi\n", stderr: "oh\n", exitCode: 0, value: { sum: 3 } });
  assert.deepEqual(await rt.run("globalThis.__return(1); process.exitCode = 3"), { stdout: "", stderr: "", exitCode: 3, value: undefined });
  assert.deepEqual(await rt.run("1"), { stdout: "", stderr: "", exitCode: 0, value: undefined });
  assert.deepEqual((await rt.run("__return(new Date(0)); __return({ at: new Date(0) })")).value, { at: "1970-01-01T00:00:00.000Z" });
});

test("exec returns output and status", async () => {
  assert.deepEqual(await rt.exec("import os from 'node:os'; console.log(await os.hostname(), process.env.COLOR)"), { stdout: "secure-exec red\n", stderr: "", exitCode: 0 });
  const failed = await rt.exec("throw new Error('broken')");
  assert.equal(failed.exitCode, 1);
  assert.match(failed.stderr, /Error: broken\n.*secure-exec-program-\d+\.mjs:1:7/s);
});

test("programs are ES modules in /tmp", async () => {
  const { value } = await rt.run<unknown[]>("__return([import.meta.url, process.cwd(), typeof require])");
  assert.match(String(value?.[0]), /^file:\/\/\/tmp\/secure-exec-program-\d+\.mjs$/);
  assert.deepEqual(value?.slice(1), ["/workspace", "undefined"]);
});

test("options of one program", async () => {
  const code = "import { text } from 'node:stream/consumers'; console.log(process.env.COLOR, process.env.SIZE, process.cwd(), await text(process.stdin))";
  assert.equal((await rt.exec(code, { env: { SIZE: "5" }, cwd: "/app", stdin: "in" })).stdout, "red 5 /app in\n");
  assert.equal((await rt.exec("process.stdin.pipe(process.stdout)", { stdin: new Uint8Array([97, 98]) })).stdout, "ab");
});

test("output arrives as bytes while the program is in progress", async () => {
  const pieces: Uint8Array[] = [];
  const errors: string[] = [];
  const result = await rt.exec("process.stdout.write('é'); await new Promise((r) => setTimeout(r, 50)); console.error('e'); process.stdout.write(Buffer.from([255]))", {
    onStdout: (piece) => pieces.push(piece),
    onStderr: (piece) => errors.push(new TextDecoder().decode(piece)),
  });
  assert.ok(pieces.every((p) => p instanceof Uint8Array));
  assert.deepEqual(Buffer.concat(pieces), Buffer.from([0xc3, 0xa9, 255]));
  assert.equal(errors.join(""), "e\n");
  assert.deepEqual(result, { stdout: "é\uFFFD", stderr: "e\n", exitCode: 0 });
});

test("a program that prints more than 16 MiB says that its output was cut", async () => {
  const result = await rt.exec("const line = 'x'.repeat(1 << 20); for (let i = 0; i < 17; i++) process.stdout.write(line)");
  assert.deepEqual([result.exitCode, result.stdout.length, result.truncated], [0, 16 << 20, { stdout: true, stderr: false }]);
});

test("a timeout kills the program", async () => {
  const { exitCode, stdout } = await rt.exec("console.log('busy'); for (;;);", { timeout: 3000 });
  assert.deepEqual([exitCode !== 0, stdout], [true, "busy\n"]);
});

test("abort rejects with the signal's reason", async () => {
  const control = new AbortController();
  const reason = new Error("enough");
  await assert.rejects(rt.exec("console.log('started'); setInterval(() => {}, 1000)", { signal: control.signal, onStdout: () => control.abort(reason) }), (error) => error === reason);
  await assert.rejects(rt.run("1", { signal: control.signal }), (error) => error === reason);
  await assert.rejects(rt.exec("1", { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("commands", async () => {
  assert.deepEqual(await rt.execCommand("sh", ["-c", "cat; echo $COLOR >&2; exit 3"], { stdin: "text" }), { stdout: "text", stderr: "red\n", exitCode: 3 });
  await assert.rejects(rt.execCommand("no-such-program"), (error) => error instanceof GaolError && error.code === "no_program");
});

test("files", async () => {
  assert.deepEqual(await rt.readFile("/app/data/raw"), new Uint8Array([0, 255]));
  await rt.writeFile("/workspace/deep/er/a.txt", "text");
  await rt.writeFile("workspace/deep/b", new Uint8Array([1, 2]));
  await rt.writeFile("/app/note.txt", "beside a file of create");
  await assert.rejects(rt.writeFile("/etc/note.txt", ""), { code: "forbidden" });
  assert.equal((await rt.exec("import fs from 'node:fs'; console.log(fs.readFileSync('deep/er/a.txt', 'utf8'), fs.readFileSync('deep/b').length); fs.symlinkSync('b', 'deep/link')")).stdout, "text 2\n");
  assert.deepEqual((await rt.readDir("/workspace/deep")).sort(), ["b", "er", "link"]);
  assert.deepEqual((await rt.readDirWithTypes("/workspace/deep/")).sort((a, b) => (a.name < b.name ? -1 : 1)), [
    { name: "b", isDirectory: false, isSymbolicLink: false }, { name: "er", isDirectory: true, isSymbolicLink: false }, { name: "link", isDirectory: false, isSymbolicLink: true },
  ]);
  await assert.rejects(rt.readFile("/workspace/nothing"), { code: "not_found" });
});

test("memory that a program has no right to is a status", async () => {
  const { exitCode } = await rt.exec("const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1));");
  assert.notEqual(exitCode, 0);
});

test("dispose may be called again, and ends everything", async () => {
  const timings: string[] = [];
  const other = await NodeRuntime.create({ onBootTiming: ({ phase, durationMs }) => timings.push(durationMs >= 0 ? phase : "") });
  assert.deepEqual(timings, ["connect", "permissions", "create"]);
  const pending = other.exec("setInterval(() => {}, 1000)").catch((error: unknown) => error);
  await Promise.all([other.dispose(), other.dispose()]);
  await other.dispose();
  assert.ok((await pending) instanceof Error || (await pending as { exitCode: number }).exitCode !== 0);
  for (const use of [() => other.run("1"), () => other.readFile("/x"), () => other.registerBindings({})]) await assert.rejects(use(), { code: "closed" });
  assert.throws(() => other.spawnCommand("ls"), { code: "closed" });
});

test("await using disposes", async () => {
  let seen: NodeRuntime;
  {
    await using inner = await NodeRuntime.create();
    seen = inner;
    assert.equal((await inner.run<number>("__return(1)")).value, 1);
  }
  await assert.rejects(seen.run("1"), { code: "closed" });
});
