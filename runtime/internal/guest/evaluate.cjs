// What makes a program an evaluation: console's lines and an uncaught error go to the
// host as frames, and the value of the snippet as __evaluated hands it over.
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

// A stream as console needs one. What it is given is a line.
function lineStream(write) {
  const nothing = () => {};
  return { write, on: nothing, once: nothing, removeListener: nothing, listenerCount: () => 1, writable: true };
}

// Has console's lines go to the host, with the level of the method that was called. It
// goes on as it is otherwise: groups, tables, counts and inspect's text are Node's.
// One line more than there may be is sent, so that the host knows of it. Returns what
// begins to count anew.
function captureConsole(bounds) {
  let left = bounds.logs + 1;
  let level = null;
  const stream = (usual) =>
    lineStream((text) => {
      if (left-- <= 0) return true;
      const line = text.endsWith('\n') ? text.slice(0, -1) : text;
      writeAll(encodeLog(level ?? usual, line.slice(0, 2 * (bounds.logLength + 1)))); // the host counts characters
      return true;
    });
  for (const [name, usual] of [['_stdout', LEVEL.log], ['_stderr', LEVEL.error]]) {
    defineProperty(console, name, { value: stream(usual), configurable: true, writable: true });
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

// The host is told of an uncaught error, unless the program has a handler of its own. Node
// says that there is one before it calls any.
function reportUncaught() {
  const { exit } = process;
  process.on('uncaughtExceptionMonitor', (err) => {
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
    writeAll(failureFrame(err));
    exit(1);
  });
}

// JSON of a text, or of its beginning, where that is too much.
function fit(text, limit) {
  for (let most = text.length; most > 0; most >>= 1) {
    const json = stringify(most === text.length ? text : `${text.slice(0, most)}…`);
    if (byteLength(json) <= limit) return json;
  }
  throw new RangeError(`the value has no text of ${limit} bytes`);
}

const MOST_WHY = 1000; // characters of why there is no value

// A value as the host takes it: by form, as JSON, or as the text that Node's REPL shows.
// undefined is no JSON. Code that says what its value is fails if that has none; of other
// code it is noted, as its last expression may be there for what it does.
function valueFrame(value, { value: limit, form, explicit }) {
  if (form) return encodeValue(fit(inspect(value, { colors: form === 'colors', showProxy: true }), limit));
  if (value === undefined) return null;
  if (!explicit && value instanceof EventEmitter) return encodeNoValue('value: it is an EventEmitter, such as a server or a stream, and no data');
  try {
    return encodeValue(valueJSON(value, limit));
  } catch (err) {
    if (explicit || !isRefusal(err)) throw err;
    return encodeNoValue(String(err.message).slice(0, MOST_WHY));
  }
}

function evaluate({ path, value: limit, evaluate: options }) {
  captureConsole(options);
  reportUncaught();
  const exported = new Exports(path);
  // What has no JSON fails the evaluation, but ends nothing: what the program has begun
  // goes on. The host keeps the last failure that it is told of.
  function deliver(value, explicit) {
    try {
      const frame = valueFrame(value, { value: limit, form: options.form, explicit });
      if (frame) writeAll(frame);
    } catch (err) {
      writeAll(failureFrame(refused(err, __evaluated)));
    }
  }
  // Without a value of its own, the code's value is what it has exported.
  function __evaluated(value) {
    const explicit = options.explicit && value !== undefined; // what is exported may be functions
    if (value === undefined) value = exported.get();
    if (types.isPromise(value)) value.then((result) => deliver(result, explicit)); // a rejection is an uncaught error
    else deliver(value, explicit);
  }
  defineProperty(globalThis, '__evaluated', { value: __evaluated });
}

module.exports = { captureConsole, evaluate, failureFrame, refused, reportFatal, valueFrame, writeAll };
delete require.cache[__filename];
