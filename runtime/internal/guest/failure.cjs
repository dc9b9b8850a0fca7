// Reports the error that ended a program to the host: its name, message and stack, its own
// properties, its cause and the errors that it combines, each within limits.
'use strict';

const { inspect } = require('node:util');
const { Error, Object, SafeSet, String, SyntaxError, apply, concat, exec, includes, join, method, slice, split, startsWith, stringify, trimStart } = require('./intrinsics.cjs');
const { toJSON, writeAll } = require('./control.cjs');
const { encodeFailure } = require('./wire.cjs');

const { AggregateError, SuppressedError } = globalThis; // Node 22 lacks the second
const { isArray } = Array;
const { byteLength } = Buffer;
const { defineProperty, getOwnPropertyDescriptor, keys } = Object;
const tagOf = method(Object.prototype.toString);

// The limits of an error and of a cause, in characters.
const OF_ERROR = { name: 256, message: 16_384, stack: 32_768 };
const OF_CAUSE = { name: 256, message: 2_048, stack: 4_096 };
const MAX_CODE = 256;
const MAX_CAUSES = 4; // nested
const MAX_ERRORS = 8; // in an error
const MAX_NESTED = 16; // errors inside the reported one
const MAX_PROPERTIES = 32;
const MAX_PROPERTY = 4_096; // members and characters of a property, then bytes of its JSON
const MAX_TOTAL = 192 << 10; // bytes

const text = (value, limit) => slice(String(value), 0, limit);

let internalBinding; // Node's, once it is known

// Returns the text that Node attaches to V8's syntax errors in modules: the file and line, the
// line's text, and carets under the position. The name of the property is internal to Node;
// the inspector finds it in a few milliseconds.
function arrowOf(err) {
  internalBinding ??= require('./inside.cjs').ownVariables(['internalBinding']).internalBinding;
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
  const found = exec(/^(.*:\d+)\n.*\n(\s*)\^/, String(arrow));
  if (found === null) return stack;
  const rest = startsWith(stack, arrow) ? trimStart(slice(stack, arrow.length)) : stack;
  const lines = split(rest, '\n    at ');
  lines[0] += `\n    at ${found[1]}:${found[2].length + 1}`;
  return join(lines, '\n    at ');
}

const isError = (err) => err instanceof Error || tagOf(err) === '[object Error]';

// Returns the value of an own property that is not a getter.
const ownValue = (err, name) => getOwnPropertyDescriptor(err, name)?.value;

const REPORTED = ['name', 'message', 'stack', 'code', 'cause'];

// Returns an error's own enumerable properties that have JSON, as members of an object.
function propertiesOf(err) {
  const members = [];
  const names = keys(err);
  for (let i = 0; i < names.length && members.length < MAX_PROPERTIES; i++) {
    const name = names[i];
    if (includes(REPORTED, name) || name.length > MAX_CODE) continue;
    try {
      const json = toJSON(ownValue(err, name), undefined, MAX_PROPERTY);
      if (json !== undefined && byteLength(json) <= MAX_PROPERTY) members[members.length] = `${stringify(name)}:${json}`;
    } catch {
      // it cannot be encoded as JSON
    }
  }
  return join(members, ',');
}

// Returns the errors that an error combines.
function combinedBy(err) {
  if (SuppressedError && err instanceof SuppressedError) return [err.error, err.suppressed];
  const errors = err instanceof AggregateError ? ownValue(err, 'errors') : undefined;
  return isArray(errors) ? errors : [];
}

// Returns the stack, or nothing if the program's Error.prepareStackTrace throws.
function readableStack(err) {
  try {
    return stackOf(err) ?? '';
  } catch {
    return '';
  }
}

// Describes an error. visit describes those inside it: undefined for none.
function membersOf(err, limits, visit) {
  const member = (name, value) => `"${name}":${stringify(text(value, limits[name]))}`;
  let members = `${member('name', err.name)},${member('message', err.message)},${member('stack', readableStack(err))}`;
  const code = ownValue(err, 'code');
  if (typeof code === 'string' || typeof code === 'number') members += `,"code":${stringify(text(code, MAX_CODE))}`;
  const properties = propertiesOf(err);
  if (properties) members += `,"properties":{${properties}}`;
  const cause = visit && ownValue(err, 'cause');
  const inner = cause === undefined ? undefined : visit(cause);
  if (inner !== undefined) members += `,"cause":{${inner}}`;
  const combined = visit ? combinedBy(err) : [];
  const errors = [];
  for (let i = 0; i < combined.length && errors.length < MAX_ERRORS; i++) {
    const one = visit(combined[i]);
    if (one !== undefined) errors[errors.length] = `{${one}}`;
  }
  return errors.length > 0 ? `${members},"errors":[${join(errors, ',')}]` : members;
}

const membersWithoutStack = (message) => `"name":"","message":${stringify(message)},"stack":""`;
const membersOfOther = (value, limit) => membersWithoutStack(text(typeof value === 'string' ? value : inspect(value), limit));

// Describes an error with the errors inside it: each once, as they may form a cycle.
function membersOfTree(err) {
  const seen = new SafeSet();
  const describeAt = (depth) => (one) => {
    if (seen.has(one) || depth > MAX_CAUSES || seen.size > MAX_NESTED) return undefined;
    seen.add(one);
    return isError(one) ? membersOf(one, depth === 0 ? OF_ERROR : OF_CAUSE, describeAt(depth + 1)) : membersOfOther(one, OF_CAUSE.message);
  };
  return describeAt(0)(err);
}

// Describes a thrown value for the host. The value may throw when its properties are read.
function describe(err) {
  try {
    if (!isError(err)) return membersOfOther(err, OF_ERROR.message);
    const members = membersOfTree(err);
    return byteLength(members) <= MAX_TOTAL ? members : membersOf(err, OF_CAUSE);
  } catch {
    return membersWithoutStack('an error that can not be looked at');
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
      if (apply(listenerCount, process, ['uncaughtException']) > 0 || hasUncaughtExceptionCaptureCallback()) return;
      try {
        writeAll(failureFrame(err));
      } catch {
        // the program has closed the descriptor
      }
    };
    events[MONITOR] = others === undefined ? listen : concat([listen], others);
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

module.exports = { failureFrame, reportFatal, useInternals: (binding) => (internalBinding = binding) };
