// Finds completions for a line of code, without running code of the guest: it calls no
// getter and no trap of a proxy.
//
// The request is {"path": ["a", "b"], "prefix": "c"} for a line that ends in a.b.c
'use strict';

const { isProxy } = require('node:util').types;

const { getOwnPropertyDescriptor, getOwnPropertyDescriptors, getOwnPropertyNames, getPrototypeOf, values } = Object;
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
  nodeGetters = new Set(values(getOwnPropertyDescriptors(globalThis)).map(({ get }) => get));
}

// Yields an object and its prototypes.
function* chain(value) {
  if (value === null || value === undefined) return;
  for (let at = Object(value), i = 0; at !== null && !isProxy(at) && i < MAX_PROTOTYPES; i++) {
    yield at;
    at = getPrototypeOf(at);
  }
}

function property(value, name) {
  for (const at of chain(value)) {
    const found = getOwnPropertyDescriptor(at, name);
    if (!found) continue;
    if (!found.get) return found.value;
    return nodeGetters.has(found.get) ? found.get.call(at) : undefined;
  }
}

// Returns the value of a variable. lexical has those that are not properties of globalThis.
function variable(name, { names, read }) {
  if (name === 'globalThis') return globalThis;
  return names.includes(name) ? read(name) : property(globalThis, name);
}

function* namesOf(value) {
  for (const at of chain(value)) {
    if (at === value && (Array.isArray(at) || isView(at))) yield 'length'; // the other own names are indices
    else yield* getOwnPropertyNames(at);
  }
}

function complete({ path: [first, ...rest], prefix }, lexical) {
  let all;
  if (first === undefined) all = [...lexical.names, ...namesOf(globalThis)];
  else all = [...namesOf(rest.reduce(property, variable(first, lexical)))];
  const matching = all.filter((name) => name.startsWith(prefix) && name.length <= MAX_LENGTH && NAME.test(name));
  return [...new Set(matching)].sort().slice(0, MAX_NAMES);
}

module.exports = { complete, saveNodeGetters };
delete require.cache[__filename];
