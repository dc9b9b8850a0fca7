// Compares toJSON, which passes plain data to JSON.stringify without a replacer, with convert,
// which handles all values. They must return the same text, throw the same error, and run
// the same getters, toJSON methods and proxy traps.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import test from 'node:test';
import { find } from './fakehost.mjs';
import { random } from './random.mjs';

const { convert, nameOfArguments, nameOfValue, toJSON } = createRequire(import.meta.url)(find('values.cjs'));

function outcome(f) {
  try {
    return { text: f() };
  } catch (err) {
    return { error: `${err?.name}: ${err?.message}` };
  }
}

// make returns a new value, and the list in which its code records calls.
function compare(make, label) {
  for (const names of [nameOfValue, nameOfArguments]) {
    const [fast, slow] = [make(), make()];
    if (names === nameOfArguments && !Array.isArray(fast.value)) continue;
    const got = outcome(() => toJSON(fast.value, names));
    const want = outcome(() => convert(slow.value, names, Infinity));
    assert.deepEqual([got, fast.calls], [want, slow.calls], label);
  }
}

const PRIMITIVES = [
  null, undefined, true, false, 0, -0, 1, -1.5, 1e21, 1e-7, NaN, Infinity, -Infinity, 2 ** 53,
  '', 'x', 'ü', '😀', '\ud800', '"\\\n\u2028\0', '__proto__', 'x'.repeat(1000),
];
const KEYS = ['a', 'b', '0', '10', 'toJSON', '__proto__', 'ü', '', 'type', 'data', 'constructor'];

// Values that JSON.stringify alone might write differently than convert.
const SPECIAL = [
  () => 1n, () => Symbol('s'), () => () => 1, () => class {}, () => Object(1n), () => Object(Symbol()), () => Object('x'), () => Object(1), () => Object(false),
  () => new Date(0), () => new Date(NaN), () => /x/g, () => new Error('no', { cause: 1 }), () => Object.assign(new TypeError('no'), { code: 'E' }),
  () => new Map([['a', 1]]), () => new Map([[1, 'a']]), () => new Set([1, 'x']), () => new WeakMap(), () => Promise.resolve(1),
  () => Buffer.from('x'), () => new Uint8Array(2), () => new Uint8ClampedArray(2), () => new Float32Array([1.5]), () => new BigInt64Array(1),
  () => new ArrayBuffer(2), () => new SharedArrayBuffer(2), () => new DataView(new ArrayBuffer(2)), () => new URL('http://localhost/'), () => new Headers(),
  () => new (class A { a = 1; #b = 2; }), () => new (class B {}), () => new (class extends Array {})(1, 2), () => Object.create({ inherited: 1 }), () => Object.create(Array.prototype),
  () => (function () { return arguments; })(1, 2), () => Object.assign([1], { extra: 2 }), () => [, 1], () => new Array(3), () => JSON.rawJSON?.('1.0') ?? 1, () => process.env,
  () => ({ type: 'Buffer', data: [1] }), () => Object.defineProperty({ a: 1 }, 'hidden', { value: 1n }), () => ({ [Symbol('s')]: 1n }), () => Object.freeze({ a: [1] }),
  () => { const a = {}; a.b = [a]; return a; }, () => { const a = []; a.push(a); return a; }, () => { const shared = { a: 1 }; return [shared, shared]; },
  () => { let deep = 1; for (let i = 0; i < 300; i++) deep = i % 2 ? [deep] : { deep }; return deep; },
];

// Values that run code.
const ACTIVE = [
  (log) => ({ get a() { return log('get a') ?? 1; } }),
  (log) => ({ b: 1, get a() { return log('get a') ?? []; }, c: 1n }),
  (log) => ({ set a(_) { log('set a'); } }),
  (log) => Object.defineProperty([1, 2], 0, { get: () => log('get 0') ?? 'x', enumerable: true }),
  (log) => ({ toJSON: (key) => log(`toJSON ${key}`) ?? { from: key } }),
  (log) => Object.defineProperty({ a: 1 }, 'toJSON', { get: () => void log('get toJSON') }),
  (log) => Object.assign([1], { toJSON: () => log('toJSON') ?? 2 }),
  (log) => ({ a: 1, get b() { throw new RangeError(log('throw') ?? 'no'); } }),
  (log) => traced({ a: 1, b: { c: 2 } }, log),
  (log) => traced([1, 2], log),
  (log) => Object.create(traced({}, log)),
  (log) => Object.setPrototypeOf([1], traced(Array.prototype, log)),
  (log) => Object.defineProperty({ a: 1 }, 'toJSON', { value: () => log('toJSON') ?? new Map([['m', 1]]) }),
  (log) => Object.defineProperty([1], 'toJSON', { value: () => log('toJSON') ?? new Set([1]) }),
  (log) => Object.assign(Object.create(null), { a: traced({}, log) }),
];

function traced(target, log) {
  return new Proxy(target, new Proxy({}, { get: (_, trap) => (...args) => (log(`${trap} ${String(args[1])}`), Reflect[trap](...args)) }));
}

function randomValue(below, log, depth) {
  const kind = below(depth > 0 ? 12 : 6);
  if (kind < 6) return PRIMITIVES[below(PRIMITIVES.length)];
  if (kind === 6 && below(4) === 0) return SPECIAL[below(SPECIAL.length)]();
  if (kind === 7 && below(8) === 0) return ACTIVE[below(ACTIVE.length)](log);
  if (kind === 8 && below(8) === 0) {
    const odd = SPECIAL[below(SPECIAL.length)]();
    if (odd !== process.env && Object(odd) === odd && Object.isExtensible(odd)) Object.setPrototypeOf(odd, [Object.prototype, Array.prototype, null][below(3)]);
    return odd;
  }
  if (kind < 9) return Array.from({ length: below(5) }, () => randomValue(below, log, depth - 1));
  const object = below(4) === 0 ? { __proto__: null } : {};
  for (let n = below(6); n > 0; n--) {
    const value = randomValue(below, log, depth - 1);
    Object.defineProperty(object, KEYS[below(KEYS.length)], { value, writable: true, enumerable: below(20) > 0, configurable: true });
  }
  return object;
}

test('each kind of value, alone and with another prototype', () => {
  const makers = [...PRIMITIVES.map((value) => () => value), ...SPECIAL, ...ACTIVE];
  const wraps = [(v) => v, (v) => [v], (v) => ({ a: 1, v }), (v) => [{ v: [v] }, v]];
  const prototypes = [undefined, Object.prototype, Array.prototype, null];
  for (const maker of makers) {
    for (const wrap of wraps) {
      for (const proto of prototypes) {
        const make = () => {
          const calls = [];
          const value = maker((call) => void calls.push(call));
          if (proto !== undefined && value !== process.env && Object(value) === value && Object.isExtensible(value)) Object.setPrototypeOf(value, proto);
          calls.length = 0;
          return { value: wrap(value), calls };
        };
        compare(make, `${maker} ${wrap} ${proto === undefined ? '' : Object.prototype.toString.call(proto)}`);
      }
    }
  }
});

test('random values', () => {
  for (let seed = 0; seed < 20_000; seed++) {
    const make = () => {
      const calls = [];
      const value = randomValue(random(seed), (call) => void calls.push(call), 5);
      calls.length = 0; // recorded by Object.setPrototypeOf of a Proxy
      return { value, calls };
    };
    compare(make, `seed ${seed}`);
  }
});

test('prototypes that the program has changed', () => {
  const values = [() => [1, { a: [, 'x'] }], () => ({ a: {} }), () => 'x', () => ({ __proto__: null, a: [] }), () => []];
  const changes = [
    [Object.prototype, 'toJSON', { value: () => 1 }], [Array.prototype, 'toJSON', { value: () => 'list' }], [String.prototype, 'toJSON', { value: () => 1 }],
    [Object.prototype, 'more', { value: () => 1, enumerable: true }], [Array.prototype, 0, { value: 'proto', writable: true }], [Array.prototype, 0, { get: () => 1n }],
    [Object.prototype, 'a', { get: () => 1n, enumerable: true, set() {} }],
  ];
  for (const [object, key, descriptor] of changes) {
    const failed = [];
    Object.defineProperty(object, key, { ...descriptor, configurable: true });
    try {
      for (const make of values) {
        const [got, want] = [outcome(() => toJSON(make())), outcome(() => convert(make(), nameOfValue, Infinity))];
        if (got.text !== want.text || got.error !== want.error) failed[failed.length] = `${make}: ${got.text ?? got.error}, want ${want.text ?? want.error}`;
      }
    } finally {
      delete object[key];
    }
    assert.deepEqual(failed, [], String(key));
  }
});
