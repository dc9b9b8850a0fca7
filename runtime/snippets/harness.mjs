// Runs a snippet in the sandbox, and reports its state to the host. program.go appends a call of
// start or inspect. Nothing that confines the snippet depends on this file: a snippet that changes it
// only changes its own report.
//
//  adapter -> snippet -- settled, thrown, exit --> 'exit' event ──┐
//                     -- timeout ---------------> __interrupted ──┴> { facts, derived, errors }
//
// Both objects are JSON texts. Console lines and uncaught errors are sent as they occur.

// Imports of these would cost 2 ms of CPU time: a snippet takes 11.5 ms, not 13.5.
const { registerHooks } = process.getBuiltinModule('node:module');
const { types } = process.getBuiltinModule('node:util');

const MAIN = 'file:///workspace/src/main.mjs'; // no such file exists
const ADAPTER = 'file:///workspace/.adapter.mjs'; // nor these
const EXPORTS = 'file:///workspace/.exports.mjs';
const MAX_STATE = 1 << 20; // bytes of facts and derived together

const { __evaluated: send } = globalThis;
const { exit, nextTick } = process;
const { stringify } = JSON;
const { byteLength } = Buffer;
const { isTypedArray } = types;
const { ownKeys } = Reflect;
const { defineProperty, entries, fromEntries, keys } = Object;

let adapter = {};
let namespace = {}; // of the snippet; keys would throw before all exports are initialized
let waiting = true; // for the snippet, or for the adapter
let unsettled = false; // nothing is left that could settle it
const recorded = [];

// Returns what JSON.stringify must write instead of a value. It is a string for a value that has
// no members.
function plain(value) {
  switch (typeof value) {
    case 'bigint':
      return `${value}n`;
    case 'function':
      return `[function ${value.name}]`;
    case 'symbol':
      return String(value);
  }
  if (value instanceof Error || value instanceof RegExp) return String(value);
  if (value instanceof Set || isTypedArray(value)) return [...value];
  if (!(value instanceof Map)) return value;
  return [...value.keys()].every((key) => typeof key === 'string') ? fromEntries(value) : [...value];
}

// Returns the adapter's replacement of an object or a function; undefined if it knows none.
function serialized(value) {
  const known = typeof value === 'function' || (typeof value === 'object' && value !== null);
  return known ? adapter.serialize?.(value, recorded) : undefined;
}

// Returns the JSON of any value; undefined for undefined.
function encode(root) {
  const ancestors = []; // of the value that JSON.stringify writes: { source, written }
  return stringify(root, function (key, given) {
    while (ancestors.length > 0 && ancestors.at(-1).written !== this) ancestors.pop();
    const source = this[key];
    const isObject = typeof source === 'object' && source !== null;
    if (isObject && ancestors.some((a) => a.source === source)) return '[circular]';
    const written = serialized(source) ?? plain(given);
    if (isObject) ancestors.push({ source, written });
    return written;
  });
}

// Returns the text of an argument of console.log.
function text(value) {
  try {
    const written = serialized(value) ?? (typeof value === 'number' ? String(value) : plain(value));
    return typeof written === 'string' ? written : (encode(value) ?? String(value));
  } catch (err) {
    return `[no text: ${err?.message}]`;
  }
}

for (const name of ['log', 'info', 'debug', 'warn', 'error']) {
  const print = console[name];
  console[name] = defineProperty((...args) => print(args.map(text).join(' ')), 'name', { value: name });
}

// Returns the snippet's exports so far.
function exported() {
  const found = {};
  for (const name of ownKeys(namespace)) {
    if (typeof name === 'symbol') continue;
    try {
      found[name] = namespace[name];
    } catch {
      // not initialized
    }
  }
  return found;
}

function report(interrupted) {
  const errors = [];
  const state = { facts: '{}', derived: '{}' };
  try {
    const read = adapter.read?.(recorded, exported()) ?? {};
    for (const name of keys(state)) state[name] = encode(read[name] ?? {});
  } catch (err) {
    errors.push(`the state could not be read: ${text(err)}`);
  }
  const size = byteLength(state.facts) + byteLength(state.derived);
  if (size > MAX_STATE) {
    errors.push(`the state has ${size} bytes of JSON, the limit is ${MAX_STATE}`);
    state.facts = state.derived = '{}';
  }
  if (unsettled) errors.push('the snippet awaits a promise that nothing settles');
  if (interrupted || unsettled) errors.push(...inFlight());
  return { ...state, errors };
}

function inFlight() {
  try {
    const names = adapter.pending?.(recorded) ?? [];
    return names.length > 0 ? [`still in flight: ${names.join(', ')}`] : [];
  } catch {
    return [];
  }
}

// Serves modules by URL. packages are the specifiers of the modules of packages that the snippet imports, by path.
function serve(modules, packages = {}) {
  const served = (url) => ({ url, format: 'module', shortCircuit: true });
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier in modules) return served(specifier);
      const found = next(specifier, context);
      const exports = context.parentURL === MAIN && adapter.wrap?.[packages[specifier]];
      if (!exports) return found;
      const url = `${found.url}?wrapped`;
      modules[url] ??= wrapper(found.url, packages[specifier], keys(exports));
      return served(url);
    },
    load: (url, context, next) => (url in modules ? { format: 'module', source: modules[url], shortCircuit: true } : next(url, context)),
  });
}

// Returns a module that takes the place of a package's module, whose exports the adapter wraps.
function wrapper(url, specifier, names) {
  const from = stringify(url);
  const wrapped = names.map((name, i) => {
    const args = [specifier, name].map((text) => stringify(text)).join(', ');
    return `const $${i} = globalThis[Symbol.for('gaol.wrap')](${args}, real[${stringify(name)}]);\nexport { $${i} as ${stringify(name)} };\n`;
  });
  const rest = names.includes('default') ? '' : 'export default real.default;\n';
  return `import * as real from ${from};\nexport * from ${from};\n${rest}${wrapped.join('')}`;
}

// Wraps an export of a package by the adapter.
function wrap(specifier, name, original) {
  return adapter.wrap[specifier][name](original, record);
}

function record(value) {
  recorded.push(value);
  return value;
}

const define = (name, value) => defineProperty(globalThis, Symbol.for(name), { value });

// The module EXPORTS and the snippet import each other. So the snippet's exports can be read when
// it throws, too.
function start({ code, adapter: source, packages }) {
  define('gaol.exports', (found) => (namespace = found));
  define('gaol.wrap', wrap);
  globalThis.__interrupted = () => report(true);
  process.on('beforeExit', () => (unsettled = waiting));
  process.on('exit', () => send(report(false)));
  serve({
    __proto__: null,
    [MAIN]: `${code}\nimport '${EXPORTS}';`,
    [ADAPTER]: source,
    [EXPORTS]: `import * as found from '${MAIN}'; globalThis[Symbol.for('gaol.exports')](found);`,
  }, packages);
  run().catch((err) => nextTick(() => { throw err; })); // so that values other than errors are reported as they are
}

async function run() {
  adapter = await import(ADAPTER);
  await import(MAIN);
  await adapter.settle?.(recorded);
  waiting = false;
  if (adapter.settle) exit();
}

// Loads the adapter, and checks the form of its exports.
async function inspect({ adapter: source }) {
  serve({ __proto__: null, [ADAPTER]: source });
  const { wrap = {} } = await import(ADAPTER);
  for (const [specifier, exports] of entries(wrap)) {
    for (const [name, replace] of entries(exports)) {
      if (typeof replace !== 'function') throw new TypeError(`wrap: ${name} of ${specifier} is not a function`);
    }
  }
  send(true);
}
