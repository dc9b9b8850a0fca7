// JavaScript's built-in functions, taken before the program runs: it may replace any of them, or
// declare a global variable of the same name. After its start, the guest's half of gaol uses
// nothing else of the language's library.
//
// Syntax uses the library, too: for-of, array patterns and spread call Array.prototype's iterator.
'use strict';

// Turns a method into a function whose first argument is the object.
const { bind, call } = Function.prototype;
const method = bind.bind(call);
const getter = (object, name) => method(Object.getOwnPropertyDescriptor(object, name).get);

// Returns a class like Map or Set whose methods can't be replaced.
function safe(Base) {
  class Safe extends Base {}
  const own = Object.getOwnPropertyDescriptors(Base.prototype);
  delete own.constructor;
  Object.defineProperties(Safe.prototype, own);
  return Object.setPrototypeOf(Safe.prototype, null).constructor;
}

const { Array, BigInt, Date, Error, Map, Number, Object, Promise, Proxy, RangeError, RegExp, Set, String, SyntaxError, TypeError, Uint8Array, WeakSet } = globalThis;
const { prototype: array } = Array;
const { prototype: string } = String;

module.exports = {
  BigInt, Date, Error, Number, Object, Promise, Proxy, RangeError, String, SyntaxError, TypeError, Uint8Array,
  SafeMap: safe(Map), SafeSet: safe(Set), SafeWeakSet: safe(WeakSet),
  getter, method,
  apply: Reflect.apply, ownKeys: Reflect.ownKeys, set: Reflect.set,
  parse: JSON.parse, rawJSON: JSON.rawJSON, stringify: JSON.stringify,
  concat: method(array.concat), filter: method(array.filter), includes: method(array.includes), join: method(array.join), map: method(array.map),
  shift: method(array.shift), sort: method(array.sort),
  endsWith: method(string.endsWith), slice: method(string.slice), split: method(string.split), startsWith: method(string.startsWith),
  textIncludes: method(string.includes), trimStart: method(string.trimStart),
  exec: method(RegExp.prototype.exec),
  then: method(Promise.prototype.then),
};
