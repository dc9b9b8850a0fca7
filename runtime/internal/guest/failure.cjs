// How the host learns which error ended a program: its name, message and stack, its own
// properties, and its cause, each within bounds.
'use strict';

const { inspect } = require('node:util');
const { encodeFailure } = require('./wire.cjs');

let toJSON, writeAll; // of control.cjs

const { stringify } = JSON;
const { byteLength } = Buffer;
const { defineProperty, getOwnPropertyDescriptor, keys } = Object;

// The most of an error and of a cause, in characters.
const OF_ERROR = { name: 256, message: 16_384, stack: 32_768 };
const OF_CAUSE = { name: 256, message: 2_048, stack: 4_096 };
const MOST_CODE = 256;
const MOST_CAUSES = 4;
const MOST_PROPERTIES = 32;
const MOST_PROPERTY = 4_096; // members and characters of one, then bytes of its JSON
const MOST = 192 << 10; // bytes of all

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

const isError = (err) => err instanceof Error || Object.prototype.toString.call(err) === '[object Error]';

// The value of a property that is no getter.
const own = (err, name) => getOwnPropertyDescriptor(err, name)?.value;

const ELSEWHERE = ['name', 'message', 'stack', 'code', 'cause'];

// An error's own enumerable properties that have JSON, as the members of an object.
function propertiesOf(err) {
  const members = [];
  for (const name of keys(err)) {
    if (members.length === MOST_PROPERTIES) break;
    if (ELSEWHERE.includes(name) || name.length > MOST_CODE) continue;
    try {
      const json = toJSON(own(err, name), undefined, MOST_PROPERTY);
      if (json !== undefined && byteLength(json) <= MOST_PROPERTY) members.push(`${stringify(name)}:${json}`);
    } catch {
      // it has none
    }
  }
  return members.join();
}

function membersOf(err, most, causes) {
  const members = [['name', err.name], ['message', err.message], ['stack', stackOf(err) ?? '']].map(
    ([name, value]) => `"${name}":${stringify(text(value, most[name]))}`,
  );
  const [code, cause] = [own(err, 'code'), own(err, 'cause')];
  if (typeof code === 'string' || typeof code === 'number') members.push(`"code":${stringify(text(code, MOST_CODE))}`);
  const properties = propertiesOf(err);
  if (properties) members.push(`"properties":{${properties}}`);
  if (isError(cause) && causes > 0) members.push(`"cause":{${membersOf(cause, OF_CAUSE, causes - 1)}}`);
  return members.join();
}

const bare = (name, message) => `"name":${stringify(name)},"message":${stringify(message)},"stack":""`;

// Describes a thrown value for the host. The value may throw when its properties are read.
function describe(err) {
  try {
    if (!isError(err)) return bare('', text(typeof err === 'string' ? err : inspect(err), OF_ERROR.message));
    const members = membersOf(err, OF_ERROR, MOST_CAUSES);
    return byteLength(members) <= MOST ? members : membersOf(err, OF_CAUSE, 0);
  } catch {
    return bare('', 'an error that can not be looked at');
  }
}

const failureFrame = (err) => encodeFailure(`{${describe(err)}}`);

// Tells the host of the error that ends the program, and nothing else changes: Node prints
// it, and exits. Node asks process for its handler of uncaught errors before it calls it.
// Only then a listener is put before all others, so that a program finds none, and no frame
// of a wrapper in its stacks.
function reportFatal() {
  const handle = process._fatalException;
  if (typeof handle !== 'function') return;
  const { listenerCount, hasUncaughtExceptionCaptureCallback } = process;
  const MONITOR = 'uncaughtExceptionMonitor';
  const arm = () => {
    const events = process._events;
    const others = events[MONITOR];
    const listen = (err) => {
      if (others === undefined) delete events[MONITOR];
      else events[MONITOR] = others;
      if (listenerCount.call(process, 'uncaughtException') > 0 || hasUncaughtExceptionCaptureCallback()) return;
      try {
        writeAll(failureFrame(err));
      } catch {
        // the program has closed the descriptor
      }
    };
    events[MONITOR] = others === undefined ? listen : [listen].concat(others);
  };
  defineProperty(process, '_fatalException', {
    get() {
      try {
        arm();
      } catch {
        // the program has spoilt what it stands on
      }
      return handle;
    },
    set(value) {
      defineProperty(process, '_fatalException', { value, writable: true, enumerable: true, configurable: true });
    },
    enumerable: true,
    configurable: true,
  });
}

module.exports = (control) => {
  ({ toJSON, writeAll } = control);
  return { failureFrame, reportFatal };
};
delete require.cache[__filename];
