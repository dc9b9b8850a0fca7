// Reads the program of a run and starts it. prelude.cjs and child.cjs load this module before
// the program, in the main thread and in each worker. It is a convenience for the program:
// nothing that confines the guest depends on it.
//
// Descriptor 4, a sealed memory file:   u32 n | n bytes of JSON | the program
//     {"wire", "path", "format",          version of internal/wire; path of the program; Node's name of its format
//      "dir",                             working directory that a new Node enters; without it Node began there
//      "base",                            path from which the program imports; without it there may be no file at path
//      "mapped",                          the program has a source map for stack traces
//      "typescript",                      it may import TypeScript: see typescript.cjs
//      "value",                           maximum bytes of a value; 0: no __return
//      "globals", "functions", "args",    JSON of the host's values by name; paths of its functions; maximum bytes of a call's arguments
//      "bigInts",                         BigInts become integers of JSON
//      "async",                           indices of the functions that return promises
//      "evaluate": {"logs", "logLength",  maximum number of console lines, and characters of a line
//        "form",                          of the value: "" for JSON; "text", "colors": as Node's REPL prints it
//        "explicit",                      whether the code names its value, as with return
//        "interruptible"},                whether it can report after its timeout: see grace.cjs
//      "context": {"logs", "logLength",   limits of the lines between two cells: see context.cjs
//        "last"}}                         whether globalThis._ is the value of the last cell
//
// Integers are big-endian. program.go is the host's half; wire.cjs defines the frames on
// descriptors 3 and 5.
'use strict';

const fs = require('node:fs');
const Module = require('node:module');
const nodePath = require('node:path');
const { pathToFileURL } = require('node:url');
const { control, defineGlobals, theCalls } = require('./control.cjs');
const { reportFatal, useInternals } = require('./failure.cjs');
const { VERSION } = require('./wire.cjs');

const { defineProperty, getOwnPropertyDescriptor, keys } = Object;
const isMainThread = !process.abort.disabled; // node:worker_threads takes 2 ms to load

const PROGRAM_FD = 4;
const PASS_FLAGS = ['node:test', 'node:bench']; // modules that pass Node's own flags to children

const IMPORTS = ['import', 'createRequire', 'eval', 'Function']; // programs without these need no hooks, which take 0.1 ms

// Reads at explicit positions, as workers read the same file.
function readFile() {
  const size = fs.fstatSync(PROGRAM_FD).size;
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const n = fs.readSync(PROGRAM_FD, bytes, at, size - at, at);
    if (n === 0) throw new Error('the program is cut off');
    at += n;
  }
  return bytes;
}

function decodeProgram(bytes) {
  const end = 4 + bytes.readUInt32BE(0);
  const head = JSON.parse(bytes.toString('utf8', 4, end));
  if (head.wire !== VERSION) throw new Error(`the host speaks version ${head.wire}, this is ${VERSION}`);
  return { ...head, source: bytes.toString('utf8', end) };
}

// As Text in guest.go, for rehearsals of the zygote.
function encodeProgram(head, code) {
  const json = Buffer.from(JSON.stringify({ wire: VERSION, ...head }));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(json.length);
  return Buffer.concat([size, json, Buffer.from(code)]);
}

const readProgram = () => decodeProgram(readFile());

// Serves the program as a module without reading its file, also under other names. The hooks are
// removed when it is loaded, or with a worker's first load, so that the program neither sees
// them nor pays for them.
function serve({ path, base, format, source }, names) {
  const url = pathToFileURL(path).href;
  const hooks = Module.registerHooks({
    resolve(specifier, context, next) {
      return specifier === url || specifier === path || names.includes(specifier) ? { url, format, shortCircuit: true } : next(specifier, context);
    },
    load(requested, context, next) {
      if (requested === url || !isMainThread) hooks.deregister();
      if (requested === url && base && format === 'commonjs') moveModule(path, base);
      return requested === url ? { format, source, shortCircuit: true } : next(requested, context);
    },
  });
}

// Makes a CommonJS module that is about to be compiled require from base. Its __dirname, where
// programs keep their data, is the folder of base, too.
function moveModule(path, base) {
  const { dirname } = nodePath;
  const folder = dirname(base);
  Object.assign(Module._cache[path], { filename: base, path: folder, paths: Module._nodeModulePaths(folder) });
  nodePath.dirname = (asked) => { // called next with path
    if (asked !== path) return dirname(asked);
    nodePath.dirname = dirname;
    return folder;
  };
}

// Makes the program's imports, and what it creates with createRequire, begin at base. This costs
// imports of other modules less than can be measured.
function importFrom({ path, base }) {
  const url = pathToFileURL(path).href;
  const parentURL = pathToFileURL(base).href;
  let require;
  Module.registerHooks({
    resolve(specifier, context, next) {
      if (context.parentURL !== url) return next(specifier, context);
      try {
        if (!context.conditions.includes('require') || Module.isBuiltin(specifier)) return next(specifier, { ...context, parentURL });
        require ??= Module.createRequire(base); // Node ignores another parentURL here
        return { url: pathToFileURL(require.resolve(specifier)).href, shortCircuit: true };
      } catch (err) {
        hideFrames(err);
        throw err;
      }
    },
  });
}

// Removes the frames of this file from the stack of an error of Node.
function hideFrames(err) {
  err.stack = err.stack.replaceAll(/\n    at [^\n]*\/(?:prelude|program|typescript)\.cjs:\d+:\d+\)?(?=\n|$)/g, '');
}

// Makes Node run the program instead of the file at main: Node resolves its main module with
// Module._findPath, which can be replaced. Returns further names of the program.
function redirect({ path, format }, main) {
  const find = Module._findPath;
  const { realpathSync } = fs;
  const module = `${path}.mjs`; // the extension selects Node's loader for ES modules
  Module._findPath = (request, ...rest) => {
    Module._findPath = find;
    if (request !== main) return find(request, ...rest); // a worker that runs another file
    if (format === 'commonjs') return false;
    const restore = () => (fs.realpathSync = realpathSync);
    fs.realpathSync = (found) => { // called next, unless Node runs with --preserve-symlinks-main
      restore(); // before anything imports it by name
      return found;
    };
    Promise.resolve().then(restore);
    return module;
  };
  return [main, pathToFileURL(module).href];
}

// Resets the flags that sized the main thread's heap: V8 reads them for each new heap, and they
// override a worker's resourceLimits. Without them a worker's heap has Node's default size.
function resetHeapFlags() {
  const { setFlagsFromString } = require('node:v8');
  setFlagsFromString('--max-old-space-size=0');
  setFlagsFromString('--max-semi-space-size=0');
}

// Resets them before the first worker: node:v8 takes 4 ms to load. Node's module of workers replaces
// process.chdir when it is loaded.
function resetHeapFlagsForWorkers() {
  const own = getOwnPropertyDescriptor(process, 'chdir');
  defineProperty(process, 'chdir', {
    configurable: true,
    enumerable: own.enumerable,
    get: () => own.value,
    set(value) {
      defineProperty(process, 'chdir', { ...own, value });
      resetHeapFlags();
    },
  });
}

// Makes Node use source maps, as --enable-source-maps does, except for packages.
function followSourceMaps() {
  if (Module.setSourceMapsSupport) Module.setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
  else process.setSourceMapsEnabled(true); // before Node 22.14
}

// Modules that few programs need. A zygote loads them in advance.
const onDemand = (name) => {
  let loaded;
  return () => (loaded ??= require(name));
};
const loadContext = onDemand('./context.cjs');
const loadEvaluate = onDemand('./evaluate.cjs');
const loadGrace = onDemand('./grace.cjs');
const typeScript = onDemand('./typescript.cjs');

function loadTypeScript() {
  const { install } = typeScript();
  return (program) => {
    const calls = isMainThread ? theCalls() : null;
    install(program, calls && ((...args) => calls.translate(...args)), followSourceMaps);
  };
}

// Node's internals, which the inspector finds in a few milliseconds. A zygote does so in advance.
let internals;
function findInternals() {
  if (internals) return internals;
  const { internalBinding, require: internalRequire } = require('./inside.cjs').ownVariables(['internalBinding', 'require']);
  useInternals(internalBinding);
  return (internals = { internalBinding, internalRequire });
}

function prepareInterruption() {
  findInternals();
  loadGrace();
}

// Makes an output stream, if it is a pipe, write synchronously from its first use on: with plain Node's
// asynchronous pipes, process.exit and uncaught errors would discard data that the host has not read yet.
function writeSynchronously(name) {
  const own = getOwnPropertyDescriptor(process, name);
  defineProperty(process, name, {
    ...own,
    get() {
      defineProperty(process, name, own);
      if (process[name]._type === 'pipe') process[name]._handle?.setBlocking(true);
      return process[name];
    },
  });
}

// Runs the program instead of the main module at main.
function begin(program, main) {
  // Before serve, whose hooks must not see their imports.
  if (program.context && isMainThread) {
    const installTypeScript = loadTypeScript();
    loadContext().context(program, findInternals(), theCalls(), { defineGlobals, installTypeScript: () => installTypeScript(program) });
  }
  if (program.evaluate && isMainThread) loadEvaluate();
  if (program.evaluate?.interruptible && isMainThread) prepareInterruption();
  if (program.mapped) followSourceMaps();
  if (program.typescript && !program.context) loadTypeScript()(program);
  if (program.base && IMPORTS.some((word) => program.source.includes(word))) importFrom(program);
  serve(program, redirect(program, main));
  if (isMainThread) process.argv[1] = program.path;
  for (const name of keys(require.cache)) if (name.startsWith(`${__dirname}/`)) delete require.cache[name];
  process.execArgv = []; // hides the flags from the program and from its forks
  if (!isMainThread) return;
  writeSynchronously('stdout');
  writeSynchronously('stderr');
  control(program);
  if (program.evaluate) loadEvaluate().evaluate(program, (...args) => loadGrace().interruptible(internals, ...args));
  else if (!program.context) reportFatal();
}

function start() {
  const program = readProgram();
  if (isMainThread) {
    resetHeapFlagsForWorkers();
    if (program.dir) process.chdir(program.dir);
  }
  if (PASS_FLAGS.some((name) => program.source.includes(name))) require('./inside.cjs').hideFlags(); // takes a few milliseconds
  begin(program, isMainThread ? process.argv[1] : program.path);
}

module.exports = { begin, decodeProgram, encodeProgram, loadContext, loadEvaluate, loadTypeScript, prepareInterruption, readFile, readProgram, resetHeapFlags, start };
