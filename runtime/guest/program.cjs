// The guest's half of a run's protocol. prelude.cjs and zygote.cjs load it before the
// program, in the main thread and in each worker. It is a convenience for the
// program, not a guard: nothing that keeps the guest in depends on it.
//
// Descriptor 4, a sealed memory file:   u32 n | n bytes of JSON | the program
//     {"wire", "path", "format",          version of internal/wire; where the program seems to be; Node's name for its format
//      "value",                           the most bytes of a value; 0: no __return
//      "globals", "functions", "args",    JSON of the host's values by name; paths of its functions; the most bytes of a call's arguments
//      "evaluate": {"logs", "logLength",  the most lines of console, and characters of one
//        "form"},                         what a value is made of: its JSON; "text", "colors": as Node's REPL shows it
//      "context": {"logs", "logLength"}}  bounds of the lines between two cells: see context.cjs
//
// Integers are big-endian. See ../program.go for the host's half, and wire.cjs for what
// goes over descriptors 3 and 5.
'use strict';

const { readSync, fstatSync } = require('node:fs');
const { registerHooks } = require('node:module');
const { pathToFileURL } = require('node:url');
const { isMainThread } = require('node:worker_threads');
const { control, defineGlobals, theCalls } = require('./control.cjs');
const { evaluate } = require('./evaluate.cjs');
const { VERSION } = require('./wire.cjs');

const PROGRAM_FD = 4;

// Reads at positions of its own: workers read the same file.
function readProgram() {
  const size = fstatSync(PROGRAM_FD).size;
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const n = readSync(PROGRAM_FD, bytes, at, size - at, at);
    if (n === 0) throw new Error('the program is cut off');
    at += n;
  }
  const end = 4 + bytes.readUInt32BE(0);
  const head = JSON.parse(bytes.toString('utf8', 4, end));
  if (head.wire !== VERSION) throw new Error(`the host speaks version ${head.wire}, this is ${VERSION}`);
  return { ...head, source: bytes.toString('utf8', end) };
}

// Serves the program as a module that is no file, under other names too. The hooks
// go with its first load, so that they cost and show nothing afterwards.
function serve({ path, format, source }, names) {
  const url = pathToFileURL(path).href;
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      return specifier === url || specifier === path || names.includes(specifier) ? { url, format, shortCircuit: true } : next(specifier, context);
    },
    load(asked, context, next) {
      hooks.deregister();
      return asked === url ? { format, source, shortCircuit: true } : next(asked, context);
    },
  });
}

// Few runs are contexts: a zygote loads what they take, another Node when it has one.
let context;
const loadContext = () => (context ??= require('./context.cjs').context);

function begin(program, names = []) {
  if (program.context && isMainThread) loadContext()(program, theCalls(), defineGlobals); // which loads what would pass the hooks
  serve(program, names);
  delete require.cache[__filename];
  process.execArgv = []; // else they would show in the program and pass to its forks
  if (!isMainThread) return;
  control(program);
  if (program.evaluate) evaluate(program);
}

module.exports = { begin, loadContext, readProgram, serve };
