// Tests calls of host functions, with a host that replies in unusual ways.
import assert from 'node:assert/strict';
import test from 'node:test';
import { answer, run } from './fakehost.mjs';

const functions = [['f'], ['api', 'g']];
const echo = (call, to) => to.write(answer(call.number, call.json));

test('a call and its result', async () => {
  const { values, calls, stderr, rest } = await run(`__return([f(1, 'ü'), api.g(), callBinding('api.g', { a: 1 })])`, { functions, onCall: echo });
  assert.deepEqual([values, stderr, rest], [['[[1,"ü"],[],[{"a":1}]]'], '', 0]);
  assert.deepEqual(calls.map(({ func, json }) => [func, json]), [[0, '[1,"ü"]'], [1, '[]'], [1, '[{"a":1}]']]);
});

test('calls of .async return promises', async () => {
  const { values } = await run(
    `__return(await Promise.all([f.async(1), api.g.async(2), callBinding.async('f', 3), f(4), Promise.resolve(f(5))]));`,
    { functions, onCall: echo },
  );
  assert.deepEqual(values, ['[[1],[2],[3],[4],[5]]']);
});

test('the calls of a tick are one write', async () => {
  let pieces = 0;
  const { values } = await run(`__return((await Promise.all(Array.from({ length: 200 }, (_, i) => f.async(i)))).length)`, {
    functions,
    onCall(call, to, from) {
      if (call.number === 1) from.on('data', () => pieces++);
      echo(call, to);
    },
  });
  assert.deepEqual(values, ['200']);
  assert.ok(pieces <= 2, `${pieces} pieces`);
});

test('results out of order and in pieces', async () => {
  const waiting = [];
  const { values, stderr } = await run(`__return(await Promise.all(Array.from({ length: 40 }, (_, i) => f.async(i, 'ü'.repeat(i)).then(([n]) => n))))`, {
    functions,
    async onCall(call, to) {
      if (waiting.push(call) < 40) return;
      const bytes = Buffer.concat(waiting.reverse().map(({ number, json }) => answer(number, json)));
      for (let at = 0; at < bytes.length; at += 37) {
        to.write(bytes.subarray(at, at + 37));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  });
  assert.deepEqual([JSON.parse(values[0]), stderr], [Array.from({ length: 40 }, (_, i) => i), '']);
});

test('a synchronous call receives the results of asynchronous calls', async () => {
  const early = [];
  const { values } = await run(
    `const later = [f.async(1), f.async(2)];
    const now = f(3); // its result arrives last
    __return([now, ...await Promise.all(later)])`,
    {
      functions,
      onCall(call, to) {
        if (early.push(call) === 3) for (const one of early) echo(one, to);
      },
    },
  );
  assert.deepEqual(values, ['[[3],[1],[2]]']);
});

test('calls from microtasks, while timers run', async () => {
  const { values } = await run(
    `const order = [];
    setTimeout(() => order.push('timer'), 0);
    await Promise.all([f.async('a').then(() => order.push('a')), Promise.resolve().then(() => { f('b'); order.push('b') })]);
    await new Promise((r) => setTimeout(r, 5));
    __return(order.sort())`,
    { functions, onCall: echo },
  );
  assert.deepEqual(values, ['["a","b","timer"]']);
});

test('errors of host functions', async () => {
  const { values } = await run(
    `const seen = [];
    for (const call of [() => f(1), () => f.async(1), () => callBinding('f', 1)])
      try { await call() } catch (err) { seen.push([err instanceof Error, err.name, err.message, err.code, err.stack.includes('control.cjs')]) }
    __return(seen)`,
    { functions, onCall: (call, to) => to.write(answer(call.number, '{"message":"no such ü","code":"ENOENT"}', true)) },
  );
  const [now, later, byName] = JSON.parse(values[0]);
  assert.deepEqual(now, [true, 'Error', 'no such ü', 'ENOENT', false]);
  assert.deepEqual(later.slice(0, 4), now.slice(0, 4));
  assert.deepEqual(byName.slice(0, 4), now.slice(0, 4));
});

test('an asynchronous function returns a promise', async () => {
  const { values, stderr } = await run(
    `const first = f(1), second = f.async(2); // both are sent before either is answered
    const isPromise = first instanceof Promise && f.async === f && f.name === 'f';
    const caught = await f(1n).catch(err => err.name);
    __return([isPromise, await first, await second, await callBinding('f', 3), api.g(4), caught])`,
    { functions, async: [0], onCall: echo },
  );
  assert.deepEqual([values, stderr], [['[true,[1],[2],[3],[4],"TypeError"]'], '']);
});

test('the host may have a function callBinding', async () => {
  const { calls, values } = await run(`__return([callBinding.name, await callBinding('get-weather', { city: 'x' })])`, {
    functions: [['callBinding'], ['f']],
    async: [0],
    onCall: echo,
  });
  assert.deepEqual([values, calls.length], [['["callBinding",["get-weather",{"city":"x"}]]'], 1]);
});

test('an error without a code has no property code', async () => {
  const { values } = await run(`try { f() } catch (err) { __return(Object.keys(err)) }`, {
    functions,
    onCall: (call, to) => to.write(answer(call.number, '{"message":"x"}', true)),
  });
  assert.deepEqual(values, ['[]']);
});

test('invalid arguments throw at the call', async () => {
  const { values, calls } = await run(
    `const seen = [];
    for (const [call, ...args] of [[f, 1n], [f.async, 1n], [f, 'x'.repeat(999)], [f.async, 'ü'.repeat(499)], [callBinding, 'nosuch'], [callBinding.async, 'nosuch']])
      try { await call(...args) } catch (err) { seen.push(err.name + (err.code ?? '')) }
    __return(seen)`,
    { functions, onCall: echo },
  );
  assert.deepEqual([values, calls], [['["TypeError","TypeError","RangeError","RangeError","TypeErrorERR_NO_FUNCTION","TypeErrorERR_NO_FUNCTION"]'], []]);
});

test('arguments of the maximum size', async () => {
  const { values } = await run(`__return([f('x'.repeat(996))[0].length, f('ü'.repeat(498))[0].length])`, { functions, onCall: echo });
  assert.deepEqual(values, ['[996,498]']);
});

test('at most 256 asynchronous calls are in progress', async () => {
  let [now, most] = [0, 0];
  const { values } = await run(`__return((await Promise.all(Array.from({ length: 1000 }, (_, i) => f.async(i).then(([n]) => n === i)))).every(Boolean))`, {
    functions,
    onCall(call, to) {
      most = Math.max(most, ++now);
      setTimeout(() => (now--, echo(call, to)), 1);
    },
  });
  assert.deepEqual([values, most], [['true'], 256]);
});

test('the arguments of all but one of them have at most 32 MiB', async () => {
  let held = [];
  let first;
  const { values } = await run(`const x = 'x'.repeat(5e6); __return((await Promise.all(Array.from({ length: 20 }, () => f.async(x)))).length)`, {
    functions,
    args: 6e6,
    onCall(call, to) {
      held?.push(call);
      if (held === null) to.write(answer(call.number, 'null'));
      if (held?.length !== 7) return;
      setTimeout(() => {
        first = held.length; // an eighth call would have arrived
        for (const { number } of held) to.write(answer(number, 'null'));
        held = null;
      }, 200);
    },
  });
  assert.deepEqual([values, first], [['20'], 7]);
});

test('a result larger than a pipe', async () => {
  const { values } = await run(`__return([f().length, (await f.async()).length])`, {
    functions,
    onCall: (call, to) => to.write(answer(call.number, JSON.stringify('x'.repeat(3e6)))),
  });
  assert.deepEqual(values, ['[3000000,3000000]']);
});

test('results of unknown calls are ignored', async () => {
  const { values, stderr } = await run(`__return([f(1), await f.async(2)])`, {
    functions,
    onCall(call, to) {
      to.write(Buffer.concat([answer(call.number + 1000, '"no"'), answer(0, '"no"', true), answer(call.number, call.json), answer(call.number, '"twice"')]));
    },
  });
  assert.deepEqual([values, stderr], [['[[1],[2]]'], '']);
});

const closed = `
  const code = async (call) => { try { return await call() } catch (err) { return err.code } };`;

test('the host closes the channel', async () => {
  const { values } = await run(`${closed}
    const later = [f.async(1), f.async(2)].map((p) => code(() => p));
    __return([await code(() => f(3)), ...await Promise.all(later), await code(() => f(4)), await code(() => f.async(5))])`, {
    functions,
    onCall: (call, to) => call.number === 3 && to.destroy(),
  });
  assert.deepEqual(values, [JSON.stringify(Array(5).fill('ERR_HOST_CLOSED'))]);
});

test('the host closes the channel during asynchronous calls', async () => {
  const { values } = await run(`${closed}
    const all = Array.from({ length: 300 }, (_, i) => code(() => f.async(i)));
    __return([...new Set(await Promise.all(all))]); __return(await code(() => f(1)))`, {
    functions,
    onCall: (call, to) => call.number === 200 && to.destroy(),
  });
  assert.deepEqual(values, ['["ERR_HOST_CLOSED"]', '"ERR_HOST_CLOSED"']);
});

test('a pending call keeps the program alive unless it exits', async () => {
  const { code, calls, values } = await run(`f.async(1).then(() => __return(2)); __return(1)`, { functions, onCall: echo });
  assert.deepEqual([code, calls.length, values], [0, 1, ['1', '2']]);
  const ended = await run(`f.async(1); __return(1); process.exitCode = 3; setImmediate(() => process.exit())`, { functions });
  assert.deepEqual([ended.code, ended.values], [3, ['1']]);
});

test('calls work after the program has replaced builtins', async () => {
  const { values, stderr } = await run(
    `JSON.stringify = JSON.parse = Buffer.from = Buffer.prototype.write = Buffer.prototype.toString = Buffer.prototype.copy = null;
    String.prototype.includes = Function.prototype.bind = Object.defineProperty = process.nextTick = Atomics.wait = null;
    globalThis.Error = globalThis.Promise = globalThis.Buffer = null;
    const a = f(1), b = await f.async(2, { c: [3] });
    __return([a, b])`,
    { functions, onCall: echo },
  );
  assert.deepEqual([values, stderr], [['[[1],[2,{"c":[3]}]]'], '']);
});
