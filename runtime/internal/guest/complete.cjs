// Finds completions for a line of code, without running code of the guest: it calls no
// getter and no trap of a proxy.
//
// The request is {"path": ["a", "b"], "prefix": "c"} for a line that ends in a.b.c
'use strict';

const { isProxy } = require('node:util').types;
const { Object, SafeSet, apply, exec, filter, includes, sort, startsWith } = require('./intrinsics.cjs');

const { getOwnPropertyDescriptor, getOwnPropertyDescriptors, getOwnPropertyNames, getPrototypeOf, values } = Object;
const { isArray } = Array;
const { isView } = ArrayBuffer;
const MAX_NAMES = 1000;
const MAX_LENGTH = 100; // characters of a name
const MAX_PROTOTYPES = 50;
const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

// The getters of Node's own globals, which are safe to call.
let nodeGetters;

// Must be called before the guest can define getters on globalThis. It makes Node load some
// globals, so only contexts call it.
function saveNodeGetters() {
  nodeGetters = new SafeSet(values(getOwnPropertyDescriptors(globalThis)).map(({ get }) => get));
}

// Returns an object and its prototypes.
function chain(value) {
  const list = [];
  if (value === null || value === undefined) return list;
  for (let at = Object(value); at !== null && !isProxy(at) && list.length < MAX_PROTOTYPES; at = getPrototypeOf(at)) list[list.length] = at;
  return list;
}

function property(value, name) {
  const list = chain(value);
  for (let i = 0; i < list.length; i++) {
    const found = getOwnPropertyDescriptor(list[i], name);
    if (!found) continue;
    if (!found.get) return found.value;
    return nodeGetters.has(found.get) ? apply(found.get, list[i], []) : undefined;
  }
}

// Returns the value of a variable. lexical has those that are not properties of globalThis.
function variable(name, { names, read }) {
  if (name === 'globalThis') return globalThis;
  return includes(names, name) ? read(name) : property(globalThis, name);
}

function complete({ path, prefix }, lexical) {
  let value = path.length === 0 ? globalThis : variable(path[0], lexical);
  for (let i = 1; i < path.length; i++) value = property(value, path[i]);
  const found = new SafeSet();
  const add = (names) => filter(names, (name) => startsWith(name, prefix) && name.length <= MAX_LENGTH && exec(NAME, name) !== null && found.add(name));
  if (path.length === 0) add(lexical.names);
  const list = chain(value);
  for (let i = 0; i < list.length; i++) {
    const elements = list[i] === value && (isArray(value) || isView(value)); // its other own names are indices
    add(elements ? ['length'] : getOwnPropertyNames(list[i]));
  }
  const names = [];
  found.forEach((name) => (names[names.length] = name));
  sort(names);
  if (names.length > MAX_NAMES) names.length = MAX_NAMES;
  return names;
}

module.exports = { complete, saveNodeGetters };
