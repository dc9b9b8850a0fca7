// Turns a program into an evaluation: console lines, an uncaught error, and the value that
// the snippet passes to __evaluated are sent to the host as frames.
'use strict';

const { EventEmitter } = require('node:events');
const { inspect, types } = require('node:util');
const { Exports } = require('./commonjs.cjs');
const { encodeLog, encodeNoValue, encodeValue } = require('./wire.cjs');
const control = require('./control.cjs');
const { failureFrame, reportFatal } = require('./failure.cjs')(control);

const LEVEL = { debug: 1, log: 2, info: 3, warn: 4, error: 5 };

const { isRefusal, refused, valueJSON, writeAll } = control;
const { stringify } = JSON;
const { defineProperty } = Object;
const { byteLength } = Buffer;

// Returns a stream that is sufficient for console. Each write is a line.
function lineStream(write) {
  const nothing = () => {};
  return { write, on: nothing, once: nothing, removeListener: nothing, listenerCount: () => 1, writable: true };
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
      const line = text.endsWith('\n') ? text.slice(0, -1) : text;
      writeAll(encodeLog(level ?? defaultLevel, line.slice(0, 2 * (bounds.logLength + 1)))); // the host counts characters
      return true;
    });
  for (const [name, defaultLevel] of [['_stdout', LEVEL.log], ['_stderr', LEVEL.error]]) {
    defineProperty(console, name, { value: stream(defaultLevel), configurable: true, writable: true });
  }
  for (const name of ['debug', 'info', 'warn']) {
    const print = console[name];
    const leveled = (...args) => {
      const before = level;
      level = LEVEL[name];
      try {
        print(...args);
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
  const { exit } = process;
  process.on('uncaughtExceptionMonitor', (err) => {
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
    writeAll(failureFrame(err));
    exit(1);
  });
}

// Returns the JSON of a text, which it shortens until it fits.
function fit(text, limit) {
  for (let length = text.length; length > 0; length >>= 1) {
    const json = stringify(length === text.length ? text : `${text.slice(0, length)}…`);
    if (byteLength(json) <= limit) return json;
  }
  throw new RangeError(`the value has no text of ${limit} bytes`);
}

const MAX_REASON = 1000; // characters of the reason for no value

// Returns the frame of a value: its JSON or, depending on form, the text that Node's REPL
// prints; null for undefined. A value without JSON is an error if the code names its value.
// Otherwise the frame has the reason, as a last expression may be meant for its side effects.
function valueFrame(value, { value: limit, form, explicit }) {
  if (form) return encodeValue(fit(inspect(value, { colors: form === 'colors', showProxy: true }), limit));
  if (value === undefined) return null;
  if (!explicit && value instanceof EventEmitter) return encodeNoValue('value: it is an EventEmitter, such as a server or a stream, and no data');
  try {
    return encodeValue(valueJSON(value, limit));
  } catch (err) {
    if (explicit || !isRefusal(err)) throw err;
    return encodeNoValue(String(err.message).slice(0, MAX_REASON));
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
    if (types.isPromise(value)) value.then((result) => deliver(result, explicit)); // a rejection is an uncaught error
    else deliver(value, explicit);
  }
  defineProperty(globalThis, '__evaluated', { value: __evaluated });
  if (options.interruptible) makeInterruptible((value) => deliver(value, true), (err) => writeAll(failureFrame(err)));
}

module.exports = { captureConsole, evaluate, failureFrame, refused, reportFatal, valueFrame, writeAll };
delete require.cache[__filename];
