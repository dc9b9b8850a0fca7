// Tests wire.cjs with the examples of the host's half: internal/wire/testdata/frames.json.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test from 'node:test';
import { find } from './fakehost.mjs';
import { random } from './random.mjs';

const wire = createRequire(import.meta.url)(find('wire.cjs'));
const { ANSWER, CELL, Decoder, Frames } = wire;

const inTree = join(import.meta.dirname, '../../../internal/wire/testdata/frames.json');
const golden = JSON.parse(readFileSync(existsSync(inTree) ? inTree : join(import.meta.dirname, 'frames.json')));
const framesOf = (...kinds) => golden.filter(({ kind }) => kinds.includes(kind));
const bytesOf = ({ hex }) => Buffer.from(hex, 'hex');

// Returns the bytes that Frames writes.
function flushed(frames) {
  let bytes;
  frames.flush((buffer, end) => (bytes = Buffer.from(buffer.subarray(0, end))));
  return bytes;
}

function calls(...list) {
  const frames = new Frames();
  for (const { call, function: func, json } of list) assert.equal(frames.addCall(call, func, json), Buffer.byteLength(json));
  return flushed(frames);
}

test('encoded frames', () => {
  const encoders = {
    value: ({ json }) => wire.encodeValue(json),
    log: ({ level, text }) => wire.encodeLog(level, text),
    failure: ({ json }) => wire.encodeFailure(json),
    output: ({ level, text }) => wire.encodeOutput(level, Buffer.from(text)),
    'no value': ({ text }) => wire.encodeNoValue(text),
    done: ({ cell }) => wire.encodeDone(cell),
    call: (call) => calls(call),
  };
  const all = framesOf(...Object.keys(encoders));
  assert.equal(new Set(all.map(({ kind }) => kind)).size, 7);
  for (const f of all) assert.deepEqual(encoders[f.kind](f), bytesOf(f), f.name);
  const both = framesOf('call');
  assert.deepEqual(calls(...both), Buffer.concat(both.map(bytesOf)));
});

const fromHost = framesOf('answer', 'cell');
const wanted = fromHost.map(({ kind, call, failed, json, cell, text }) => (kind === 'answer' ? { kind: ANSWER, call, failed, json } : { kind: CELL, cell, text }));
const together = Buffer.concat(fromHost.map(bytesOf));

test('frames decoded from one buffer', () => {
  assert.ok(fromHost.length >= 3);
  assert.deepEqual(new Decoder().push(together), wanted);
  assert.deepEqual(new Decoder().push(Buffer.concat([together, Buffer.alloc(99, 0xff)]), together.length), wanted);
});

test('frames decoded byte by byte', () => {
  const decoder = new Decoder();
  const got = [];
  const one = Buffer.alloc(1); // reused
  for (const byte of together) {
    one[0] = byte;
    got.push(...decoder.push(one));
  }
  assert.deepEqual(got, wanted);
});

function answerFrame(call, json) {
  const body = Buffer.concat([Buffer.alloc(10), Buffer.from(json)]);
  body.writeUInt32BE(body.length - 4, 0);
  body[4] = ANSWER;
  body.writeUInt32BE(call, 5);
  return body;
}

test('frames decoded from pieces of random sizes', () => {
  for (let seed = 0; seed < 300; seed++) {
    const below = random(seed);
    const texts = Array.from({ length: 1 + below(20) }, () => 'ü'.repeat(below(4) === 0 ? below(60_000) : below(20)));
    const bytes = Buffer.concat(texts.map((text, i) => answerFrame(i, text)));
    const decoder = new Decoder();
    const buffer = Buffer.alloc(64 << 10);
    const got = [];
    for (let at = 0; at < bytes.length; ) {
      const n = Math.min(bytes.length - at, 1 + below(below(3) === 0 ? 12 : buffer.length));
      bytes.copy(buffer, 0, at, at + n);
      got.push(...decoder.push(buffer, n));
      buffer.fill(0xff);
      at += n;
    }
    assert.deepEqual(got, texts.map((json, call) => ({ kind: ANSWER, call, failed: false, json })), `seed ${seed}`);
  }
});

test('a large frame is decoded in linear time', () => {
  const json = JSON.stringify('x'.repeat(30 << 20));
  const bytes = answerFrame(7, json);
  const decoder = new Decoder();
  const got = [];
  const began = performance.now();
  for (let at = 0; at < bytes.length; at += 4096) got.push(...decoder.push(bytes.subarray(at, at + 4096)));
  assert.ok(got.length === 1 && got[0].json === json);
  assert.ok(performance.now() - began < 5000); // copying it for each of 7,000 pieces would take a minute
});

test('a frame of an unknown kind', () => {
  for (const kind of [0, 1, 3, 15, 19, 255]) assert.throws(() => new Decoder().push(Buffer.from([0, 0, 0, 2, kind, 0])), /a frame of kind/);
});

test('calls of random sizes', () => {
  for (let seed = 0; seed < 100; seed++) {
    const below = random(seed);
    const text = () => ['x', 'ü', '✓', '😀', '\ud800'][below(5)].repeat(below(5) === 0 ? below(50_000) : below(30));
    const frames = new Frames();
    for (let round = 0; round < 3; round++) {
      const list = Array.from({ length: below(30) }, () => ({ call: below(2 ** 32), func: below(2 ** 32), json: text() }));
      let size = 0;
      for (const { call, func, json } of list) {
        assert.equal(frames.addCall(call, func, json), Buffer.byteLength(json));
        assert.equal(frames.length, (size += 13 + Buffer.byteLength(json)));
      }
      const bytes = flushed(frames);
      assert.equal(frames.length, 0);
      let at = 0;
      for (const { call, func, json } of list) {
        const end = at + 4 + bytes.readUInt32BE(at);
        assert.deepEqual([bytes[at + 4], bytes.readUInt32BE(at + 5), bytes.readUInt32BE(at + 9)], [3, call, func], `seed ${seed}`);
        assert.equal(bytes.toString('utf8', at + 13, end), Buffer.from(json).toString());
        at = end;
      }
      assert.equal(at, bytes.length);
    }
  }
});

test('values from the host', () => {
  const read = (value) => wire.fromHost(typeof value === 'string' ? value : JSON.stringify(value));
  assert.deepEqual(read({ a: [1, 'ü', null] }), { a: [1, 'ü', null] });
  assert.deepEqual(read({ a: [{ '\0bytes': 'AP8=' }] }), { a: [new Uint8Array([0, 255])] });
  assert.deepEqual(read({ '\0date': '2020-01-02T03:04:05.006Z' }), new Date(Date.UTC(2020, 0, 2, 3, 4, 5, 6)));
  assert.deepEqual(read({ '\0bytes': '' }), new Uint8Array(0));
  assert.deepEqual(read({ '\0bytes': 1, '\0date': null, '\0other': 'x' }), { '\0bytes': 1, '\0date': null, '\0other': 'x' });
  assert.deepEqual(read('{"\\u0000bytes":"AA==","more":1}'), new Uint8Array(1));
  assert.equal(read('"\\u0000bytes"'), '\0bytes');
  const odd = read('{"__proto__":{"x":1}}');
  assert.ok(Object.hasOwn(odd, '__proto__') && odd.x === undefined && {}.x === undefined);
});
