// The guest's half of a run's protocol. prelude.cjs and zygote.cjs load it before the
// program, in the main thread and in each worker. It is a convenience for the
// program, not a guard: nothing that keeps the guest in depends on it.
//
// fd 4, a sealed memory file:   u32 n | n bytes of JSON | the program
//     JSON: {"path", "format", "value"}: where the program seems to be, Node's name
//     for its format, and the most bytes of a value; 0: no __return
// fd 3, a pipe to the host:     u32 n | n bytes of JSON, one frame a __return
//
// Integers are big-endian. See ../program.go and ../value.go for the host's half.
'use strict';

const { readSync, fstatSync, writeSync } = require('node:fs');
const { registerHooks } = require('node:module');
const { pathToFileURL } = require('node:url');
const { isMainThread } = require('node:worker_threads');

const VALUE_FD = 3;
const PROGRAM_FD = 4;

const { stringify } = JSON;
const { captureStackTrace } = Error;
const { defineProperty } = Object;
const { byteLength, allocUnsafe } = Buffer;
const wait = Atomics.wait.bind(Atomics, new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);

// Reads at positions of its own: workers read the same file.
function readProgram() {
  const size = fstatSync(PROGRAM_FD).size;
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const n = readSync(PROGRAM_FD, bytes, at, size - at, at);
    if (n === 0) throw new Error('the program is cut off');
    at += n;
  }
  const end = 4 + bytes.readUInt32BE(0);
  return { ...JSON.parse(bytes.toString('utf8', 4, end)), source: bytes.toString('utf8', end) };
}

// Serves the program as a module that is no file, under other names too. The hooks
// go with its first load, so that they cost and show nothing afterwards.
function serve({ path, format, source }, names) {
  const url = pathToFileURL(path).href;
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      return specifier === url || specifier === path || names.includes(specifier) ? { url, format, shortCircuit: true } : next(specifier, context);
    },
    load(asked, context, next) {
      hooks.deregister();
      return asked === url ? { format, source, shortCircuit: true } : next(asked, context);
    },
  });
}

function writeAll(bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(VALUE_FD, bytes, at);
    } catch (err) {
      if (err.code !== 'EAGAIN') throw err;
      wait(); // the program made the pipe non-blocking
    }
  }
}

function checkSize(size, limit) {
  if (size > limit) throw new RangeError(`__return: the value has ${size} bytes of JSON, the limit is ${limit}`);
}

function encode(value, limit) {
  if (value === undefined) return 'null';
  if (typeof value === 'string') checkSize(value.length + 2, limit); // before two copies fill the memory
  const text = stringify(value);
  if (text === undefined) throw new TypeError(`__return: a ${typeof value} can't be written as JSON`);
  checkSize(byteLength(text), limit);
  return text;
}

function defineReturn(limit) {
  function __return(value) {
    try {
      const text = encode(value, limit);
      const frame = allocUnsafe(4 + byteLength(text));
      frame.writeUInt32BE(frame.length - 4, 0);
      frame.write(text, 4);
      writeAll(frame);
    } catch (err) {
      if (err instanceof Error) captureStackTrace(err, __return); // the stack is the caller's
      throw err;
    }
  }
  defineProperty(globalThis, '__return', { value: __return });
}

function begin(program, names = []) {
  serve(program, names);
  delete require.cache[__filename];
  process.execArgv = []; // else they would show in the program and pass to its forks
  if (isMainThread && program.value > 0) defineReturn(program.value);
}

module.exports = { begin, readProgram, serve };
