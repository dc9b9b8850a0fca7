// The guest's half of a run's protocol. prelude.cjs and child.cjs load it before the
// program, in the main thread and in each worker. It is a convenience for the
// program, not a guard: nothing that keeps the guest in depends on it.
//
// Descriptor 4, a sealed memory file:   u32 n | n bytes of JSON | the program
//     {"wire", "path", "format",          version of internal/wire; where the program seems to be; Node's name for its format
//      "mapped",                          it has a source map, which stack traces are to follow
//      "value",                           the most bytes of a value; 0: no __return
//      "globals", "functions", "args",    JSON of the host's values by name; paths of its functions; the most bytes of a call's arguments
//      "evaluate": {"logs", "logLength",  the most lines of console, and characters of one
//        "form",                          what a value is made of: its JSON; "text", "colors": as Node's REPL shows it
//        "explicit"},                     whether the code says what its value is, as by return
//      "context": {"logs", "logLength",   bounds of the lines between two cells: see context.cjs
//        "last"}}                         globalThis._ is the value of the last cell
//
// Integers are big-endian. See ../program.go for the host's half, and wire.cjs for what
// goes over descriptors 3 and 5.
'use strict';

const fs = require('node:fs');
const Module = require('node:module');
const { pathToFileURL } = require('node:url');
const { setFlagsFromString } = require('node:v8');
const { isMainThread } = require('node:worker_threads');
const { control, defineGlobals, theCalls } = require('./control.cjs');
const { evaluate, reportFatal } = require('./evaluate.cjs');
const { VERSION } = require('./wire.cjs');

const PROGRAM_FD = 4;
const PASSES_FLAGS = /node:(test|bench)/; // modules that start children with Node's own flags

// Reads at positions of its own: workers read the same file.
function readProgram() {
  const size = fs.fstatSync(PROGRAM_FD).size;
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const n = fs.readSync(PROGRAM_FD, bytes, at, size - at, at);
    if (n === 0) throw new Error('the program is cut off');
    at += n;
  }
  const end = 4 + bytes.readUInt32BE(0);
  const head = JSON.parse(bytes.toString('utf8', 4, end));
  if (head.wire !== VERSION) throw new Error(`the host speaks version ${head.wire}, this is ${VERSION}`);
  return { ...head, source: bytes.toString('utf8', end) };
}

// Serves the program as a module that is no file, under other names too. The hooks
// go with its load, or a worker's first, so that they cost and show nothing afterwards.
function serve({ path, format, source }, names) {
  const url = pathToFileURL(path).href;
  const hooks = Module.registerHooks({
    resolve(specifier, context, next) {
      return specifier === url || specifier === path || names.includes(specifier) ? { url, format, shortCircuit: true } : next(specifier, context);
    },
    load(asked, context, next) {
      if (asked === url || !isMainThread) hooks.deregister();
      return asked === url ? { format, source, shortCircuit: true } : next(asked, context);
    },
  });
}

// Makes Node run the program in place of the file at asked: it resolves its main module
// with a function that anybody may replace. Returns further names of the program.
function redirect({ path, format }, asked) {
  const find = Module._findPath;
  const { realpathSync } = fs;
  const module = `${path}.mjs`; // an ending by which Node takes its loader for ES modules
  Module._findPath = (request, ...rest) => {
    Module._findPath = find;
    if (request !== asked) return find(request, ...rest); // a worker of another file
    if (format === 'commonjs') return false;
    fs.realpathSync = (found) => found; // called next, or not at all with --preserve-symlinks-main
    Promise.resolve().then(() => (fs.realpathSync = realpathSync)); // before Node loads the program
    return module;
  };
  return [asked, pathToFileURL(module).href];
}

// Resets the flags that sized the main thread's heap: V8 reads them for each new heap, and they
// override a worker's resourceLimits. Without them a worker's heap is as Node sizes it.
function resetHeapFlags() {
  setFlagsFromString('--max-old-space-size=0');
  setFlagsFromString('--max-semi-space-size=0');
}

// Makes Node follow source maps, as --enable-source-maps does, but not those of packages.
function followSourceMaps() {
  if (Module.setSourceMapsSupport) Module.setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
  else process.setSourceMapsEnabled(true); // before Node 22.14
}

// Few runs are contexts: a zygote loads what they take, another Node when it has one.
let context;
const loadContext = () => (context ??= require('./context.cjs').context);

// Runs the program in place of the main module at asked.
function begin(program, asked) {
  if (program.context && isMainThread) loadContext()(program, theCalls(), defineGlobals); // which loads what would pass the hooks
  if (program.mapped) followSourceMaps();
  serve(program, redirect(program, asked));
  delete require.cache[__filename];
  process.execArgv = []; // else they would show in the program and pass to its forks
  if (!isMainThread) return;
  control(program);
  if (program.evaluate) evaluate(program);
  else if (program.wire && !program.context) reportFatal(); // without a wire it is a zygote's rehearsal
}

function start() {
  const program = readProgram();
  if (isMainThread) resetHeapFlags();
  if (PASSES_FLAGS.test(program.source)) require('./inside.cjs').hideFlags(); // takes some milliseconds
  begin(program, program.path);
}

module.exports = { begin, loadContext, readProgram, resetHeapFlags, start };
