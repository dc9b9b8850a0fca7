// Finds the names that may go on a line of code, without calling anything of the guest's:
// no getter, and no trap of a proxy.
//
// What is asked for is {"path": ["a", "b"], "prefix": "c"} for a line that ends in a.b.c
'use strict';

const { isProxy } = require('node:util').types;

const { getOwnPropertyDescriptor, getOwnPropertyDescriptors, getOwnPropertyNames, getPrototypeOf, values } = Object;
const { isView } = ArrayBuffer;
const MOST = 1000; // names
const LONGEST = 100; // characters of one
const DEEPEST = 50; // prototypes
const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

// Node's own globals are getters, which do no harm.
let own;

// To be called before the guest has getters there. Looking at them has Node load some,
// which only a context is to find loaded.
function noteGlobals() {
  own = new Set(values(getOwnPropertyDescriptors(globalThis)).map(({ get }) => get));
}

// An object and its prototypes.
function* chain(value) {
  if (value === null || value === undefined) return;
  for (let at = Object(value), i = 0; at !== null && !isProxy(at) && i < DEEPEST; i++) {
    yield at;
    at = getPrototypeOf(at);
  }
}

function property(value, name) {
  for (const at of chain(value)) {
    const found = getOwnPropertyDescriptor(at, name);
    if (!found) continue;
    if (!found.get) return found.value;
    return own.has(found.get) ? found.get.call(at) : undefined;
  }
}

// What a variable holds. lexical has those that are no property of globalThis.
function variable(name, { names, read }) {
  if (name === 'globalThis') return globalThis;
  return names.includes(name) ? read(name) : property(globalThis, name);
}

function* namesOf(value) {
  for (const at of chain(value)) {
    if (at === value && (Array.isArray(at) || isView(at))) yield 'length'; // the rest are numbers
    else yield* getOwnPropertyNames(at);
  }
}

function complete({ path: [first, ...rest], prefix }, lexical) {
  let all;
  if (first === undefined) all = [...lexical.names, ...namesOf(globalThis)];
  else all = [...namesOf(rest.reduce(property, variable(first, lexical)))];
  const fit = all.filter((name) => name.startsWith(prefix) && name.length <= LONGEST && NAME.test(name));
  return [...new Set(fit)].sort().slice(0, MOST);
}

module.exports = { complete, noteGlobals };
delete require.cache[__filename];
