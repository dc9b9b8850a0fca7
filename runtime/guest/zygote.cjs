// What a zygote loads, by --require: it warms Node up and waits. In each child,
// which is a run, it makes the state that Node had from before the run's own, and
// lets Node go on to its main module as always. Workers of a run load it too.
//
// The child's descriptors, environment and arguments are jail/zygote/src/zygote.c's
// work. Here is what Node keeps copies of.
'use strict';

const fs = require('node:fs');
const Module = require('node:module');
const { pathToFileURL } = require('node:url');
const v8 = require('node:v8');
const vm = require('node:vm');
const { isMainThread } = require('node:worker_threads');
const { begin, readProgram, serve } = require('./program.cjs');

const warm = [
  'assert', 'buffer', 'child_process', 'crypto', 'events', 'fs/promises', 'net', 'os', 'path', 'perf_hooks', 'stream',
  'stream/promises', 'string_decoder', 'timers', 'timers/promises', 'tty', 'url', 'util',
];
const ADDON = '/usr/libexec/gaol/zygote.so';
const entry = process.argv[1]; // what Node takes for its main module

function warmUp() {
  // What nearly every program uses: its code is compiled, and its pages are shared.
  for (const name of warm) require(name);
  console.log(); // makes process.stdout, a pipe here as in every child
  console.error();
  loadModule();
  tidyHeap();
}

// Loads a module as a run will load its program.
function loadModule() {
  const program = { path: '/warm.mjs', format: 'module', source: 'console.log(import.meta.url); export {}' };
  serve(program, []);
  import(pathToFileURL(program.path).href);
  process._tickCallback(); // which loads it: the event loop does not turn before the fork
}

// A child copies each page that it writes to. Collecting the garbage of the start is
// such writing, and so is sweeping, which V8 puts off until it must.
function tidyHeap() {
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  v8.setFlagsFromString('--no-expose-gc');
  gc();
  const { emitWarning } = process;
  process.emitWarning = () => {}; // of what is no stable API yet
  v8.queryObjects(class {}); // walks the whole heap, which must be swept for that
  process.emitWarning = emitWarning;
}

// The streams exist, but opening one has made its pipe non-blocking. That is to
// happen to the run's pipe at the same moment as in plain Node, if ever.
function openOnUse(name) {
  const own = Object.getOwnPropertyDescriptor(process, name);
  Object.defineProperty(process, name, {
    ...own,
    get() {
      Object.defineProperty(process, name, own);
      process[name]._handle.setBlocking(false);
      return process[name];
    },
  });
}

// Has Node run the program where it would run the file at asked: it looks for its
// main module with a function that anybody may replace. Returns further names of
// the program.
function redirect({ path, format }, asked) {
  const find = Module._findPath;
  const { realpathSync } = fs;
  const module = `${path}.mjs`; // an ending by which Node takes its loader for ES modules
  Module._findPath = (request, ...rest) => {
    Module._findPath = find;
    if (request !== asked) return find(request, ...rest); // a worker of another file
    if (format === 'commonjs') return false;
    fs.realpathSync = (found) => {
      fs.realpathSync = realpathSync;
      return found;
    };
    return module;
  };
  return [asked, pathToFileURL(module).href];
}

function reseed() {
  v8.setFlagsFromString(`--random-seed=${1 + (process.hrtime()[1] ^ process.pid)}`);
  Math.random();
  v8.setFlagsFromString('--random-seed=0'); // for what has a generator of its own
}

// performance.now counts from the fork already: the addon's work.
function setTimeOrigin() {
  const own = Object.getOwnPropertyDescriptor(Performance.prototype, 'timeOrigin');
  const origin = Date.now() - performance.now();
  const { get } = Object.getOwnPropertyDescriptor({
    get timeOrigin() {
      own.get.call(this); // throws for what is no Performance
      return origin;
    },
  }, 'timeOrigin');
  Object.defineProperty(Performance.prototype, 'timeOrigin', { ...own, get });
}

function becomeRun([pid, ...args]) {
  const program = readProgram();
  Object.defineProperty(process, 'pid', { ...Object.getOwnPropertyDescriptor(process, 'pid'), value: pid });
  process.argv.splice(1, Infinity, ...args);
  process.chdir('.'); // forgets the zygote's
  openOnUse('stdout');
  openOnUse('stderr');
  reseed();
  setTimeOrigin();
  if (process.env.TZ !== undefined) process.env.TZ = process.env.TZ; // tells V8
  begin(program, redirect(program, entry));
}

if (isMainThread) {
  const addon = { exports: {} };
  process.dlopen(addon, ADDON);
  warmUp();
  becomeRun(addon.exports());
} else {
  const program = readProgram();
  begin(program, redirect(program, program.path));
}
delete require.cache[__filename];
