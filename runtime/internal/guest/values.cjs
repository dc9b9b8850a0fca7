// What a value is as JSON, on its way to the host: of __return, of an evaluation, of a
// call's arguments. JSON.stringify's rules hold, with those of docs/values.md in place of
// what it would turn into {} or could not say without a path.
'use strict';

const { types } = require('node:util');

// What the program may spoil is taken before it runs.
const method = (f) => Function.prototype.call.bind(f);
const getter = (object, name) => method(Object.getOwnPropertyDescriptor(object, name).get);
const { Error, Number, TypeError, WeakSet } = globalThis;
const { stringify } = JSON;
const { from, isBuffer } = Buffer;
const { isArray } = Array;
const { getOwnPropertyDescriptor, getPrototypeOf, hasOwn, keys, prototype } = Object;
const { isAnyArrayBuffer, isArrayBufferView, isBigInt64Array, isBigIntObject, isBigUint64Array, isBoxedPrimitive, isDataView } = types;
const { isMap, isNativeError, isPromise, isRegExp, isSet, isSymbolObject, isUint8Array, isUint8ClampedArray } = types;
const TypedArray = getPrototypeOf(Uint8Array.prototype);
const viewed = [TypedArray, DataView.prototype].map((p) => ['buffer', 'byteOffset', 'byteLength'].map((name) => getter(p, name)));
const [[bufferOf, offsetOf, sizeOf], [bufferOfData, offsetOfData, sizeOfData]] = viewed;
const lengthOf = getter(TypedArray, 'length');
const toText = method(Buffer.prototype.toString);
const textOfRegExp = method(RegExp.prototype.toString);
const tagOf = method(prototype.toString);
const eachOfMap = method(Map.prototype.forEach);
const eachOfSet = method(Set.prototype.forEach);
const cut = method(String.prototype.slice);
const matches = method(RegExp.prototype.test);
const refusals = new WeakSet();
const isRefusal = method(WeakSet.prototype.has).bind(null, refusals);
const note = method(WeakSet.prototype.add).bind(null, refusals);

const MOST_KEY = 100; // characters of a name in a path
const MOST_STEPS = 20; // names of a path
const IDENTIFIER = /^[\p{L}_$][\p{L}\p{Nd}_$]*$/u;

// A name as it is behind the object that has it.
function step(holder, key) {
  if (isArray(holder)) return `[${key}]`;
  if (key.length > MOST_KEY) return `[${stringify(`${cut(key, 0, MOST_KEY)}…`)}]`;
  return matches(IDENTIFIER, key) ? `.${key}` : `[${stringify(key)}]`;
}

const nameOfValue = { root: 'value', first: null };
const nameOfArguments = { root: 'the arguments', first: (key) => `argument ${Number(key) + 1}` };

// What is written, from the inside out: value is what there is of it, is what it was
// made of. kept and dropped say whether members of it were.
class Entry {
  constructor(outer, key, value, is) {
    this.outer = outer;
    this.key = key;
    this.value = value;
    this.is = is;
    this.kept = this.dropped = false;
  }

  path(names) {
    let [path, steps] = ['', 0];
    for (let at = this; ; at = at.outer) {
      if (at.outer === null) return names.root + path;
      if (names.first && at.outer.outer === null) return names.first(at.key) + path;
      if (++steps <= MOST_STEPS) path = step(at.outer.value, at.key) + path;
      else if (steps === MOST_STEPS + 1) path = `…${path}`;
    }
  }
}

const article = (name) => (matches(/^[AEIO]/i, name) ? 'an' : 'a');

// What an object is called: a class.
function className(value) {
  const tag = cut(tagOf(value), 8, -1);
  if (tag !== 'Object') return tag;
  const name = value.constructor?.name;
  return typeof name === 'string' && name !== '' ? cut(name, 0, MOST_KEY) : tag;
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

// Looks at an object as Buffer.prototype.toJSON makes it, without calling a getter.
function isJSONOfBuffer(value) {
  return hasOwn(value, 'data') && ownValue(value, 'type') === 'Buffer' && isArray(ownValue(value, 'data'));
}

const isBytes = (value) => isUint8Array(value) || isUint8ClampedArray(value) || isDataView(value) || isAnyArrayBuffer(value);

// An object where all keys are text, else an array of pairs.
function fromMap(map) {
  const [object, pairs] = [{ __proto__: null }, []];
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

// What JSON.stringify is to write in place of an object, whose members it then asks for.
function replace(value) {
  if (isArrayBufferView(value)) return fromNumbers(value);
  if (isMap(value)) return fromMap(value);
  if (isSet(value)) return fromSet(value);
  if (isNativeError(value) || value instanceof Error) return fromError(value);
  return value;
}

// JSON of a value; undefined of undefined. It throws what isRefusal knows for what has none.
function toJSON(value, names = nameOfValue, most = Infinity) {
  let top = null;
  let left = most; // members, and characters of text

  const refuse = (entry, why) => {
    const err = new TypeError(`${entry.path(names)}: ${why}`);
    note(err);
    throw err;
  };

  // Looks at an object of which all is written.
  const close = (entry) => {
    if (entry.kept || isArray(entry.value)) return;
    if (entry.dropped) refuse(entry, 'an object of functions alone has no JSON');
    if (isPlain(entry.is) || entry.value !== entry.is) return;
    const name = className(entry.is);
    if (name === 'Object') return;
    refuse(entry, `${article(name)} ${name} has no JSON${isPromise(entry.is) ? '; await it' : ': it has no enumerable properties of its own'}`);
  };

  const enter = (key, given) => {
    const entry = new Entry(top, key, given, given);
    for (let at = top; at !== null; at = at.outer) {
      if (at.is === given) refuse(entry, `it is ${at.path(names)} again, and JSON has no cycles`);
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
        return refuse(new Entry(top, key, given, given), 'a BigInt has no JSON; make it a string or a number');
      case 'function':
      case 'symbol':
        return drop(key, given);
    }
    if (top !== null) top.kept = true;
    if (given === null || typeof given !== 'object') return given;
    if (isJSONOfBuffer(given) && isBuffer(this[key])) given = this[key];
    if (isBytes(given)) return base64(given);
    if (isRegExp(given)) return textOfRegExp(given);
    if (isBigInt64Array(given) || isBigUint64Array(given) || isBigIntObject(given)) return visit.call(this, key, 1n);
    if (isBoxedPrimitive(given) && !isSymbolObject(given)) return given;
    return enter(key, given);
  }

  // Leaves out what JSON.stringify leaves out, or makes null in an array, but not all there is.
  const drop = (key, given) => {
    const isMember = top !== null && !(names.first && top.outer === null);
    if (!isMember) refuse(new Entry(top, key, given, given), `a ${typeof given} has no JSON`);
    top.dropped = true;
  };

  const text = stringify(value, visit);
  for (; top !== null; top = top.outer) close(top);
  return text;
}

module.exports = { isRefusal, nameOfArguments, toJSON };
delete require.cache[__filename];
