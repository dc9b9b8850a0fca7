// Tests the prelude without a host. Go's tests run this file in a runtime, with the image's
// Node. To run it with any Node: node --test runtime/internal/guest
import assert from 'node:assert/strict';
import test from 'node:test';
import { run } from './fakehost.mjs';

test('each value is a frame', async () => {
  const { code, values, stderr } = await run('__return({ a: "ü" }); __return(undefined); __return(NaN)');
  assert.deepEqual([code, values, stderr], [0, ['{"a":"ü"}', 'null', 'null'], '']);
});

test('a value larger than a pipe arrives whole', async () => {
  const { values } = await run('__return("x".repeat(300000))', { value: 1 << 20 });
  assert.equal(values[0].length, 300002);
});

test('a value over the limit, or without JSON, throws at the call', async () => {
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

test('__return works after the program has replaced builtins', async () => {
  const { values, stderr } = await run(`
    JSON.stringify = Buffer.byteLength = Buffer.allocUnsafe = Error.captureStackTrace = null;
    __return([1]);`);
  assert.deepEqual([values, stderr], [['[1]'], '']);
});

test('without a limit there is no __return', async () => {
  const { stdout } = await run('console.log(typeof __return)', { value: 0 });
  assert.equal(stdout, 'undefined\n');
});

test('the program is the main module and sees no trace of the prelude', async () => {
  const { stdout } = await run('console.log(JSON.stringify([process.argv.slice(1), process.execArgv, import.meta.url, import.meta.main]))');
  assert.deepEqual(JSON.parse(stdout), [['/nowhere/main.mjs', 'arg'], [], 'file:///nowhere/main.mjs', true]);
});

test('a path with characters that a URL escapes', async () => {
  const path = '/no where/ä%20#?[x]\'".mjs';
  const { stdout, stderr } = await run('console.log(import.meta.filename)', { path });
  assert.deepEqual([stdout, stderr], [`${path}\n`, '']);
});

test('the host has another wire version', async () => {
  const { code, stdout, stderr } = await run('console.log(1)', { wire: 3 });
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /the host speaks version 3, this is 2/);
});

test('globals of the host', async () => {
  const globals = JSON.stringify({ n: 1, deep: { list: [null, 'ü'] }, bytes: { '\0bytes': 'AP8=' }, at: { '\0date': '1970-01-01T00:00:00.005Z' } });
  const { values, stderr } = await run(
    `__return([n, deep, bytes instanceof Uint8Array && [...bytes], at instanceof Date && +at]);
    n = 2; deep = undefined; __return([n, typeof deep, typeof callBinding, Object.keys(globalThis).includes('n')])`,
    { globals },
  );
  assert.deepEqual([values, stderr], [['[1,{"list":[null,"ü"]},[0,255],5]', '[2,"undefined","undefined",true]'], '']);
});

test('functions and values share objects', async () => {
  const globals = JSON.stringify({ api: { version: 1, users: { '__proto__x': 1 } } });
  const functions = [['f'], ['api', 'get'], ['api', 'users', 'put'], ['other', 'deep', 'one']];
  const { stdout, stderr, calls } = await run(
    `console.log(JSON.stringify([typeof f, f.name, typeof f.async, f.async.name, api, typeof api.get, typeof api.users.put, other, typeof other.deep.one, typeof callBinding, callBinding.name]))`,
    { globals, functions },
  );
  const want = ['function', 'f', 'function', 'f.async', { version: 1, users: { '__proto__x': 1 } }, 'function', 'function', { deep: {} }, 'function', 'function', 'callBinding'];
  assert.deepEqual([JSON.parse(stdout), stderr, calls], [want, '', []]);
});

test('a Worker has no host values or functions', async () => {
  const { stdout } = await run(
    `import { Worker } from 'node:worker_threads';
    new Worker('console.log(typeof n, typeof f, typeof __return)', { eval: true })`,
    { globals: '{"n":1}', functions: [['f']] },
  );
  assert.equal(stdout, 'undefined undefined undefined\n');
});

test('a CommonJS program', async () => {
  const { stdout, values } = await run('console.log(require.main === module, module.id); __return(1)', { format: 'commonjs', path: '/nowhere/main.cjs' });
  assert.deepEqual([stdout, values], ['true .\n', ['1']]);
});

test('a value through a non-blocking pipe', async () => {
  const { values, stderr } = await run(`
    import net from 'node:net';
    const s = new net.Socket({ fd: 3, readable: false, writable: true }); // sets O_NONBLOCK
    __return("x".repeat(900000)); s.unref();`, { value: 1 << 20 });
  assert.deepEqual([values[0]?.length, stderr], [900002, '']);
});
