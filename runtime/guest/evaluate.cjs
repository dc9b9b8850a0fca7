// What makes a program an evaluation: console's lines and an uncaught error go to the
// host as frames, and the value of the snippet as __evaluated hands it over.
'use strict';

const { inspect, types } = require('node:util');
const { Exports } = require('./commonjs.cjs');
const { encodeFailure, encodeLog, encodeValue } = require('./wire.cjs');
const { refused, toJSON, valueJSON, writeAll } = require('./control.cjs');

const LEVEL = { debug: 1, log: 2, info: 3, warn: 4, error: 5 };

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

const text = (value, most) => String(value).slice(0, most);

// What Node notes of an error of V8's about a module: its file and line, that line, and
// carets under the place. Debugging finds the name that Node has for it, and takes some
// milliseconds.
function arrowOf(err) {
  const { internalBinding } = require('./inside.cjs').ownVariables(['internalBinding']);
  return err[internalBinding('util').privateSymbols.arrow_message_private_symbol];
}

// The stack of an error, with the place where V8 refuses a module as its first line: Node
// has that at best before the error, with the line as gaol wrote it.
function stackOf(err) {
  const { stack } = err;
  if (!(err instanceof SyntaxError)) return stack;
  let arrow;
  try {
    arrow = arrowOf(err);
  } catch {
    return stack; // the program has spoilt what leads there
  }
  const [, place, before] = /^(.*:\d+)\n.*\n(\s*)\^/.exec(arrow) ?? [];
  if (!place) return stack;
  const told = stack.startsWith(arrow) ? stack.slice(arrow.length).trimStart() : stack;
  const [first, ...frames] = told.split(/\n(?=    at )/);
  return [first, `    at ${place}:${before.length + 1}`, ...frames].join('\n');
}

// What the host is told of a thrown value, whatever that does when it is looked at. It has no
// toJSON, as all other objects may.
function describe(err) {
  try {
    if (err instanceof Error || Object.prototype.toString.call(err) === '[object Error]') {
      return { __proto__: null, name: text(err.name, 256), message: text(err.message, 16_384), stack: text(stackOf(err) ?? '', 32_768) };
    }
    return { __proto__: null, name: '', message: text(typeof err === 'string' ? err : inspect(err), 16_384), stack: '' };
  } catch {
    return { __proto__: null, name: '', message: 'an error that can not be looked at', stack: '' };
  }
}

function failureFrame(err) {
  return encodeFailure(stringify(describe(err)));
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

// A value as the host takes it: by form, as JSON, or as the text that Node's REPL shows.
// undefined is no JSON.
function valueFrame(value, { value: limit, form }) {
  if (form) return encodeValue(fit(inspect(value, { colors: form === 'colors', showProxy: true }), limit));
  return value === undefined ? null : encodeValue(valueJSON(value, limit, toJSON));
}

function evaluate({ path, value: limit, evaluate: options }) {
  captureConsole(options);
  reportUncaught();
  const exported = new Exports(path);
  // What has no JSON fails the evaluation, but ends nothing: what the program has begun
  // goes on. The host keeps the last failure that it is told of.
  function deliver(value) {
    try {
      const frame = valueFrame(value, { value: limit, form: options.form });
      if (frame) writeAll(frame);
    } catch (err) {
      writeAll(failureFrame(refused(err, __evaluated)));
    }
  }
  // Without a value of its own, the code's value is what it has exported.
  function __evaluated(value) {
    if (value === undefined) value = exported.get();
    if (types.isPromise(value)) value.then(deliver); // a rejection is an uncaught error
    else deliver(value);
  }
  defineProperty(globalThis, '__evaluated', { value: __evaluated });
}

module.exports = { captureConsole, evaluate, failureFrame, valueFrame };
delete require.cache[__filename];
