// The prelude, driven by itself. Run by hand: node --test runtime/guest; by Go's
// tests: inside a runtime, with the Node of the image.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const beside = join(import.meta.dirname, 'prelude.cjs');
const prelude = existsSync(beside) ? beside : '/usr/libexec/gaol/prelude.cjs';

function programFile(head, source) {
  const text = Buffer.from(JSON.stringify(head));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(text.length);
  const path = join(tmpdir(), `program-${process.pid}-${Math.random()}`);
  writeFileSync(path, Buffer.concat([size, text, Buffer.from(source)]));
  return path;
}

// Runs source as the host would, and collects what comes back.
async function run(source, { value = 1000, format = 'module', path = '/nowhere/main.mjs' } = {}) {
  const file = programFile({ path, format, value }, source);
  const fd = openSync(file, 'r');
  rmSync(file);
  const child = spawn(process.execPath, [`--${format === 'commonjs' ? 'require' : 'import'}=${prelude}`, path, 'arg'], { stdio: ['ignore', 'pipe', 'pipe', 'pipe', fd] });
  closeSync(fd);
  const text = async (stream) => Buffer.concat(await stream.toArray());
  const [stdout, stderr, frames] = await Promise.all([1, 2, 3].map((n) => text(child.stdio[n])));
  const code = child.exitCode ?? (await new Promise((resolve) => child.once('exit', resolve)));
  return { code, stdout: String(stdout), stderr: String(stderr), values: decode(frames) };
}

function decode(bytes) {
  const values = [];
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at);
    values.push(bytes.toString('utf8', at + 4, at + 4 + size));
    at += 4 + size;
  }
  return values;
}

test('each value is a frame', async () => {
  const { code, values, stderr } = await run('__return({ a: "ü" }); __return(undefined); __return(NaN)');
  assert.deepEqual([code, values, stderr], [0, ['{"a":"ü"}', 'null', 'null'], '']);
});

test('a value larger than a pipe arrives whole', async () => {
  const { values } = await run('__return("x".repeat(300000))', { value: 1 << 20 });
  assert.equal(values[0].length, 300002);
});

test('a value over the limit, and what is no JSON, throws at the call', async () => {
  for (const [call, error] of [
    ['"x".repeat(2000)', 'RangeError'], ['["x".repeat(2000)]', 'RangeError'], ['1n', 'TypeError'], ['() => 1', 'TypeError'],
    ['Symbol()', 'TypeError'],
  ]) {
    const { code, values, stderr } = await run(`\n__return(${call})`);
    assert.equal(code, 1, call);
    assert.deepEqual(values, []);
    assert.match(stderr, new RegExp(`${error}[^]*\\n    at file:///nowhere/main.mjs:2:1`));
    assert.doesNotMatch(stderr, /prelude/);
  }
});

test('the program may spoil what the prelude uses', async () => {
  const { values, stderr } = await run(`
    JSON.stringify = Buffer.byteLength = Buffer.allocUnsafe = Error.captureStackTrace = null;
    __return([1]);`);
  assert.deepEqual([values, stderr], [['[1]'], '']);
});

test('without a limit there is no __return', async () => {
  const { stdout } = await run('console.log(typeof __return)', { value: 0 });
  assert.equal(stdout, 'undefined\n');
});

test('the program is the main module and sees no prelude', async () => {
  const { stdout } = await run('console.log(JSON.stringify([process.argv.slice(1), process.execArgv, import.meta.url, import.meta.main]))');
  assert.deepEqual(JSON.parse(stdout), [['/nowhere/main.mjs', 'arg'], [], 'file:///nowhere/main.mjs', true]);
});

test('a name that a URL escapes', async () => {
  const path = '/no where/ä%20#?[x]\'".mjs';
  const { stdout, stderr } = await run('console.log(import.meta.filename)', { path });
  assert.deepEqual([stdout, stderr], [`${path}\n`, '']);
});

test('CommonJS', async () => {
  const { stdout, values } = await run('console.log(require.main === module, module.id); __return(1)', { format: 'commonjs', path: '/nowhere/main.cjs' });
  assert.deepEqual([stdout, values], ['true .\n', ['1']]);
});

test('a pipe that was made non-blocking', async () => {
  const { values, stderr } = await run(`
    import net from 'node:net';
    const s = new net.Socket({ fd: 3, readable: false, writable: true }); // sets O_NONBLOCK
    __return("x".repeat(900000)); s.unref();`, { value: 1 << 20 });
  assert.deepEqual([values[0]?.length, stderr], [900002, '']);
});
