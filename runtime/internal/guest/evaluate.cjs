// Turns a program into an evaluation: console lines, an uncaught error, and the value that
// the snippet passes to __evaluated are sent to the host as frames.
'use strict';

const { EventEmitter } = require('node:events');
const { inspect, types } = require('node:util');
const { Exports } = require('./commonjs.cjs');
const { Object, RangeError, String, apply, endsWith, method, slice, stringify, then } = require('./intrinsics.cjs');
const { encodeLog, encodeNoValue, encodeOutput, encodeValue } = require('./wire.cjs');
const { refused, valueJSON, writeAll } = require('./control.cjs');
const { failureFrame } = require('./failure.cjs');
const { isRefusal } = require('./values.cjs');

const LEVEL = { debug: 1, log: 2, info: 3, warn: 4, error: 5 };

const { defineProperty, getOwnPropertyDescriptor } = Object;
const { byteLength, from } = Buffer;
const { isPromise } = types;
const subarray = method(Uint8Array.prototype.subarray);
const MAX_PIECE = 4096; // bytes of output in a frame

// Returns a stream that is sufficient for console. Each write is a line.
function lineStream(write) {
  const nothing = () => {};
  return { __proto__: null, write, on: nothing, once: nothing, removeListener: nothing, listenerCount: () => 1, writable: true };
}

// Sends the program's output on process.stdout or process.stderr to the host, in one order with
// console's lines. The stream is created by its first use, as in plain Node.
function captureStream(name, number) {
  const own = getOwnPropertyDescriptor(process, name);
  const hidden = (value) => ({ __proto__: null, value, writable: true, configurable: true });
  const write = (chunk, encoding, done) => {
    try {
      const bytes = typeof chunk === 'string' ? from(chunk, encoding) : chunk;
      for (let at = 0; at < bytes.length; at += MAX_PIECE) writeAll(encodeOutput(number, subarray(bytes, at, at + MAX_PIECE)));
    } catch (err) {
      return done(err);
    }
    done();
  };
  const get = () => {
    defineProperty(process, name, own);
    const stream = process[name];
    defineProperty(stream, '_write', hidden(write));
    defineProperty(stream, '_writev', hidden(null));
    return stream;
  };
  defineProperty(process, name, { __proto__: null, ...own, get });
}

// Sends console's lines to the host, with the level of the method that was called. Groups,
// tables, counts and the formatting are Node's. It sends one line more than the limit, so that
// the host detects the excess. Returns a function that sets new bounds and restarts the count.
function captureConsole(bounds) {
  let left = bounds.logs + 1;
  let level = null;
  const stream = (defaultLevel) =>
    lineStream((text) => {
      if (left-- <= 0) return true;
      const line = endsWith(text, '\n') ? slice(text, 0, -1) : text;
      writeAll(encodeLog(level ?? defaultLevel, slice(line, 0, 2 * (bounds.logLength + 1)))); // the host counts characters
      return true;
    });
  for (const [name, defaultLevel, number] of [['stdout', LEVEL.log, 1], ['stderr', LEVEL.error, 2]]) {
    defineProperty(console, `_${name}`, { value: stream(defaultLevel), configurable: true, writable: true });
    captureStream(name, number);
  }
  for (const name of ['debug', 'info', 'warn']) {
    const print = console[name];
    const leveled = (...args) => {
      const before = level;
      level = LEVEL[name];
      try {
        apply(print, console, args);
      } finally {
        level = before;
      }
    };
    console[name] = defineProperty(leveled, 'name', { value: name });
  }
  return (next) => {
    bounds = next;
    left = next.logs + 1;
  };
}

// Reports an uncaught error to the host, unless the program has its own handler. Node emits
// the monitor event before it calls a handler.
function reportUncaught() {
  const { exit, hasUncaughtExceptionCaptureCallback, listenerCount } = process;
  process.on('uncaughtExceptionMonitor', (err) => {
    if (apply(listenerCount, process, ['uncaughtException']) > 0 || hasUncaughtExceptionCaptureCallback()) return;
    writeAll(failureFrame(err));
    exit(1);
  });
}

// Returns the JSON of a text, which it shortens until it fits.
function fit(text, limit) {
  for (let length = text.length; length > 0; length >>= 1) {
    const json = stringify(length === text.length ? text : `${slice(text, 0, length)}…`);
    if (byteLength(json) <= limit) return json;
  }
  throw new RangeError(`the text of the value exceeds ${limit} bytes`);
}

const MAX_REASON = 1000; // characters of the reason for no value

// Returns the frame of a value: its JSON or, depending on form, the text that Node's REPL
// prints; null for undefined. A value without JSON is an error if the code names its value.
// Otherwise the frame carries the reason, as a last expression may be meant for its side effects.
function valueFrame(value, { value: limit, form, explicit }) {
  if (form) return encodeValue(fit(inspect(value, { colors: form === 'colors', showProxy: true }), limit));
  if (value === undefined) return null;
  if (!explicit && value instanceof EventEmitter) return encodeNoValue('value: it is an EventEmitter, such as a server or a stream, and no data');
  try {
    return encodeValue(valueJSON(value, limit));
  } catch (err) {
    if (explicit || !isRefusal(err)) throw err;
    return encodeNoValue(slice(String(err.message), 0, MAX_REASON));
  }
}

// makeInterruptible is for options.interruptible.
function evaluate({ path, value: limit, evaluate: options }, makeInterruptible) {
  captureConsole(options);
  reportUncaught();
  const exported = new Exports(path);
  // A value without JSON fails the evaluation, but the program continues. The host keeps the
  // last failure that is reported.
  function deliver(value, explicit) {
    try {
      const frame = valueFrame(value, { value: limit, form: options.form, explicit });
      if (frame) writeAll(frame);
    } catch (err) {
      writeAll(failureFrame(refused(err, __evaluated)));
    }
  }
  // The value of code without a value is its exports.
  function __evaluated(value) {
    const explicit = options.explicit && value !== undefined; // exports may be functions
    if (value === undefined) value = exported.get();
    if (isPromise(value)) then(value, (result) => deliver(result, explicit)); // a rejection is an uncaught error
    else deliver(value, explicit);
  }
  defineProperty(globalThis, '__evaluated', { value: __evaluated });
  if (options.interruptible) makeInterruptible((value) => deliver(value, true), (err) => writeAll(failureFrame(err)));
}

module.exports = { captureConsole, evaluate, valueFrame };
