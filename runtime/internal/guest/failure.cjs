// Reports the error that ended a program to the host: its name, message and stack, its own
// properties, and its cause, each within limits.
'use strict';

const { inspect } = require('node:util');
const { encodeFailure } = require('./wire.cjs');

let toJSON, writeAll; // from control.cjs

const { stringify } = JSON;
const { byteLength } = Buffer;
const { defineProperty, getOwnPropertyDescriptor, keys } = Object;

// The limits of an error and of a cause, in characters.
const OF_ERROR = { name: 256, message: 16_384, stack: 32_768 };
const OF_CAUSE = { name: 256, message: 2_048, stack: 4_096 };
const MAX_CODE = 256;
const MAX_CAUSES = 4;
const MAX_PROPERTIES = 32;
const MAX_PROPERTY = 4_096; // members and characters of a property, then bytes of its JSON
const MAX_TOTAL = 192 << 10; // bytes

const text = (value, limit) => String(value).slice(0, limit);

// Returns the text that Node attaches to V8's syntax errors in modules: the file and line, the
// line's text, and carets under the position. The name of the property is internal to Node;
// the inspector finds it in a few milliseconds.
function arrowOf(err) {
  const { internalBinding } = require('./inside.cjs').ownVariables(['internalBinding']);
  return err[internalBinding('util').privateSymbols.arrow_message_private_symbol];
}

// Returns the stack of an error. For a syntax error in a module, it adds the position as the
// first frame: Node only prints it before the error, with the line as gaol has rewritten it.
function stackOf(err) {
  const { stack } = err;
  if (!(err instanceof SyntaxError)) return stack;
  let arrow;
  try {
    arrow = arrowOf(err);
  } catch {
    return stack; // the program has changed the objects on the way
  }
  const [, place, before] = /^(.*:\d+)\n.*\n(\s*)\^/.exec(arrow) ?? [];
  if (!place) return stack;
  const rest = stack.startsWith(arrow) ? stack.slice(arrow.length).trimStart() : stack;
  const [first, ...frames] = rest.split(/\n(?=    at )/);
  return [first, `    at ${place}:${before.length + 1}`, ...frames].join('\n');
}

const isError = (err) => err instanceof Error || Object.prototype.toString.call(err) === '[object Error]';

// Returns the value of an own property that is not a getter.
const ownValue = (err, name) => getOwnPropertyDescriptor(err, name)?.value;

const REPORTED = ['name', 'message', 'stack', 'code', 'cause'];

// Returns an error's own enumerable properties that have JSON, as members of an object.
function propertiesOf(err) {
  const members = [];
  for (const name of keys(err)) {
    if (members.length === MAX_PROPERTIES) break;
    if (REPORTED.includes(name) || name.length > MAX_CODE) continue;
    try {
      const json = toJSON(ownValue(err, name), undefined, MAX_PROPERTY);
      if (json !== undefined && byteLength(json) <= MAX_PROPERTY) members.push(`${stringify(name)}:${json}`);
    } catch {
      // it has no JSON
    }
  }
  return members.join();
}

function membersOf(err, limits, causes) {
  const members = [['name', err.name], ['message', err.message], ['stack', stackOf(err) ?? '']].map(
    ([name, value]) => `"${name}":${stringify(text(value, limits[name]))}`,
  );
  const [code, cause] = [ownValue(err, 'code'), ownValue(err, 'cause')];
  if (typeof code === 'string' || typeof code === 'number') members.push(`"code":${stringify(text(code, MAX_CODE))}`);
  const properties = propertiesOf(err);
  if (properties) members.push(`"properties":{${properties}}`);
  if (isError(cause) && causes > 0) members.push(`"cause":{${membersOf(cause, OF_CAUSE, causes - 1)}}`);
  return members.join();
}

const membersWithoutStack = (name, message) => `"name":${stringify(name)},"message":${stringify(message)},"stack":""`;

// Describes a thrown value for the host. The value may throw when its properties are read.
function describe(err) {
  try {
    if (!isError(err)) return membersWithoutStack('', text(typeof err === 'string' ? err : inspect(err), OF_ERROR.message));
    const members = membersOf(err, OF_ERROR, MAX_CAUSES);
    return byteLength(members) <= MAX_TOTAL ? members : membersOf(err, OF_CAUSE, 0);
  } catch {
    return membersWithoutStack('', 'an error that can not be looked at');
  }
}

const failureFrame = (err) => encodeFailure(`{${describe(err)}}`);

// Reports the error that ends the program to the host. Node still prints it and exits. Node
// reads process._fatalException before it calls this handler of uncaught errors. Only then is
// a listener added, before all others, so that a program sees no listener, and no frame of a
// wrapper in its stacks.
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
        // the program has changed the objects that arm needs
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
