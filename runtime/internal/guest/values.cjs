// Converts values to JSON for the host: the value of __return, of an evaluation, and the
// arguments of a call. The rules follow JSON.stringify, with the exceptions that
// docs/evaluation.md lists: it would write {} for such values, or fail without naming the place.
'use strict';

const { types } = require('node:util');

const { BigInt, Error, Number, Object, SafeWeakSet, TypeError, apply, exec, getter, method, rawJSON, slice, stringify } = require('./intrinsics.cjs');
const { from, isBuffer } = Buffer;
const { isArray } = Array;
const { getOwnPropertyDescriptor, getPrototypeOf, hasOwn, keys, prototype } = Object;
const { isAnyArrayBuffer, isArrayBufferView, isBigInt64Array, isBigIntObject, isBigUint64Array, isBoxedPrimitive, isDataView } = types;
const { isMap, isNativeError, isPromise, isProxy, isRegExp, isSet, isSymbolObject, isUint8Array, isUint8ClampedArray } = types;
const arrayPrototype = Array.prototype;
const TypedArray = getPrototypeOf(Uint8Array.prototype);
const viewed = [TypedArray, DataView.prototype].map((p) => ['buffer', 'byteOffset', 'byteLength'].map((name) => getter(p, name)));
const [[bufferOf, offsetOf, sizeOf], [bufferOfData, offsetOfData, sizeOfData]] = viewed;
const lengthOf = getter(TypedArray, 'length');
const toText = method(Buffer.prototype.toString);
const textOfRegExp = method(RegExp.prototype.toString);
const textOfBigInt = method(BigInt.prototype.toString);
const valueOfBigInt = method(BigInt.prototype.valueOf);
const tagOf = method(prototype.toString);
const lookupGetter = method(prototype.__lookupGetter__);
const eachOfMap = method(Map.prototype.forEach);
const eachOfSet = method(Set.prototype.forEach);
const matches = (pattern, text) => exec(pattern, text) !== null;
const refusals = new SafeWeakSet();
const isRefusal = (err) => refusals.has(err);

let bigInts = false; // become integers of JSON
const allowBigInts = () => (bigInts = true);

const MAX_KEY = 100; // characters of a name in a path
const MAX_STEPS = 20; // names in a path
const MAX_DATA_DEPTH = 50; // of what isData accepts

// Returns the last part of the path of a member: .name or [index].
function step(holder, key) {
  if (isArray(holder)) return `[${key}]`;
  if (key.length > MAX_KEY) return `[${stringify(`${slice(key, 0, MAX_KEY)}…`)}]`;
  const identifier = /^[\p{L}_$][\p{L}\p{Nd}_$]*$/u; // here, as V8 takes 0.3 ms for its classes
  return matches(identifier, key) ? `.${key}` : `[${stringify(key)}]`;
}

// How a path begins: with root, or with first(key) for a member of the root.
const nameOfValue = { root: 'value', first: null };
const nameOfArguments = { root: 'the arguments', first: (key) => `argument ${Number(key) + 1}` };

// An object that JSON.stringify is writing. value is the object that it writes, source the
// one that value was made from. kept and dropped record whether any member was.
class Entry {
  constructor(outer, key, value, source) {
    this.outer = outer;
    this.key = key;
    this.value = value;
    this.source = source;
    this.kept = this.dropped = false;
  }

  path(names) {
    let path = '';
    let steps = 0;
    for (let at = this; ; at = at.outer) {
      if (at.outer === null) return names.root + path;
      if (names.first && at.outer.outer === null) return names.first(at.key) + path;
      if (++steps <= MAX_STEPS) path = step(at.outer.value, at.key) + path;
      else if (steps === MAX_STEPS + 1) path = `…${path}`;
    }
  }
}

const article = (name) => (matches(/^[AEIO]/i, name) ? 'an' : 'a');

// Returns the name of an object's class.
function className(value) {
  const tag = slice(tagOf(value), 8, -1);
  if (tag !== 'Object') return tag;
  const name = value.constructor?.name;
  return typeof name === 'string' && name !== '' ? slice(name, 0, MAX_KEY) : tag;
}

function isPlain(value) {
  const proto = getPrototypeOf(value);
  return proto === null || getPrototypeOf(proto) === null;
}

function base64(value) {
  if (isAnyArrayBuffer(value)) return toText(from(value), 'base64');
  if (isDataView(value)) return toText(from(bufferOfData(value), offsetOfData(value), sizeOfData(value)), 'base64');
  return toText(from(bufferOf(value), offsetOf(value), sizeOf(value)), 'base64');
}

const ownValue = (object, name) => getOwnPropertyDescriptor(object, name)?.value;

// Reports whether Buffer.prototype.toJSON may have made an object. It calls no getter.
function isJSONOfBuffer(value) {
  return hasOwn(value, 'data') && ownValue(value, 'type') === 'Buffer' && isArray(ownValue(value, 'data'));
}

const isBytes = (value) => isUint8Array(value) || isUint8ClampedArray(value) || isDataView(value) || isAnyArrayBuffer(value);

// Returns an object if all keys are strings, else an array of pairs.
function fromMap(map) {
  const object = { __proto__: null };
  const pairs = [];
  let named = true;
  let n = 0;
  eachOfMap(map, (value, key) => {
    if (typeof key === 'string') object[key] = value;
    else named = false;
    pairs[n++] = [key, value];
  });
  return named ? object : pairs;
}

function fromSet(set) {
  const list = [];
  let n = 0;
  eachOfSet(set, (value) => (list[n++] = value));
  return list;
}

function fromNumbers(view) {
  const list = [];
  for (let i = 0; i < lengthOf(view); i++) list[i] = view[i];
  return list;
}

function fromError(err) {
  const object = { __proto__: null, name: err.name, message: err.message };
  const names = keys(err);
  for (let i = 0; i < names.length; i++) object[names[i]] = err[names[i]];
  if (hasOwn(err, 'cause')) object.cause = err.cause;
  return object;
}

// Returns the object that JSON.stringify must write instead of value.
function replace(value) {
  if (isArrayBufferView(value)) return fromNumbers(value);
  if (isMap(value)) return fromMap(value);
  if (isSet(value)) return fromSet(value);
  if (isNativeError(value) || value instanceof Error) return fromError(value);
  return value;
}

const hasInternalSlots = (value) =>
  isMap(value) || isSet(value) || isNativeError(value) || isRegExp(value) || isBoxedPrimitive(value) || isArrayBufferView(value) || isAnyArrayBuffer(value);

// Reports whether JSON.stringify alone writes what convert would: plain objects, arrays and
// primitives, without toJSON and getters. It runs no code of the program. An object with a
// plain prototype can still be a Map: Object.setPrototypeOf makes it so.
function isData(value, depth = 0) {
  if (value === null) return true;
  if (typeof value !== 'object') return typeof value !== 'function' && typeof value !== 'symbol' && typeof value !== 'bigint';
  if (depth === MAX_DATA_DEPTH || isProxy(value)) return false; // the depth ends a cycle, too
  const proto = getPrototypeOf(value);
  if (isArray(value)) {
    if (proto !== arrayPrototype || 'toJSON' in value) return false;
    for (let i = 0; i < value.length; i++) {
      if (lookupGetter(value, i) !== undefined || !isData(value[i], depth + 1)) return false;
    }
    return true;
  }
  if ((proto !== prototype && proto !== null) || 'toJSON' in value || hasInternalSlots(value)) return false;
  for (const key in value) {
    if (lookupGetter(value, key) !== undefined || !isData(value[key], depth + 1)) return false;
  }
  return true;
}

// Returns the JSON of a value; undefined for undefined. For a value that cannot be encoded as JSON it
// throws an error for which isRefusal is true. limit bounds members and characters of text.
// isData pays: 6.4 MB of plain rows take 32 ms of CPU time, not 53 (JSON.stringify alone: 18).
function toJSON(value, names = nameOfValue, limit = Infinity) {
  return limit === Infinity && isData(value) ? stringify(value) : convert(value, names, limit);
}

// Converts any value with a replacer, which JSON.stringify calls for each member. left is the
// limit that remains.
function convert(value, names, left) {
  let top = null; // the innermost Entry

  const refuse = (entry, why) => {
    const err = new TypeError(`${entry.path(names)}: ${why}`);
    refusals.add(err);
    throw err;
  };

  // Checks an object after its last member was written.
  const close = (entry) => {
    if (entry.kept || isArray(entry.value)) return;
    if (entry.dropped) refuse(entry, 'an object of functions alone cannot be encoded as JSON');
    if (isPlain(entry.source) || entry.value !== entry.source) return;
    const name = className(entry.source);
    if (name === 'Object') return;
    refuse(entry, `${article(name)} ${name} cannot be encoded as JSON${isPromise(entry.source) ? '; await it' : ': it lacks own enumerable properties'}`);
  };

  const enter = (key, given) => {
    const entry = new Entry(top, key, given, given);
    for (let at = top; at !== null; at = at.outer) {
      if (at.source === given) refuse(entry, `it is ${at.path(names)} again: cycles cannot be encoded as JSON`);
    }
    entry.value = replace(given);
    top = entry;
    return entry.value;
  };

  function visit(key, given) {
    while (top !== null && top.value !== this) {
      const entry = top;
      top = top.outer;
      close(entry);
    }
    if ((left -= typeof given === 'string' ? given.length : 1) < 0) refuse(new Entry(top, key, given, given), 'too much');
    switch (typeof given) {
      case 'bigint':
        if (!bigInts) return refuse(new Entry(top, key, given, given), 'a BigInt cannot be encoded as JSON; make it a string or a number');
        if (top !== null) top.kept = true;
        return rawJSON(textOfBigInt(given));
      case 'function':
      case 'symbol':
        return drop(key, given);
    }
    if (top !== null) top.kept = true;
    if (given === null || typeof given !== 'object') return given;
    if (isJSONOfBuffer(given) && isBuffer(this[key])) given = this[key];
    if (isBytes(given)) return base64(given);
    if (isRegExp(given)) return textOfRegExp(given);
    if (isBigIntObject(given)) return apply(visit, this, [key, valueOfBigInt(given)]);
    if (!bigInts && (isBigInt64Array(given) || isBigUint64Array(given))) return apply(visit, this, [key, 1n]);
    if (isBoxedPrimitive(given) && !isSymbolObject(given)) return given;
    return enter(key, given);
  }

  // JSON.stringify omits such a member, and writes null in an array. The root can't be omitted.
  const drop = (key, given) => {
    const isMember = top !== null && !(names.first && top.outer === null);
    if (!isMember) refuse(new Entry(top, key, given, given), `a ${typeof given} cannot be encoded as JSON`);
    top.dropped = true;
  };

  const text = stringify(value, visit);
  for (; top !== null; top = top.outer) close(top);
  return text;
}

module.exports = { allowBigInts, convert, isRefusal, nameOfArguments, nameOfValue, toJSON };
