// Warms up a Node process for forks, and finds the internal state of Node that a child must
// set.
'use strict';

const Module = require('node:module');
const v8 = require('node:v8');
const { rehearseCalls } = require('./control.cjs');
const { hideFlags, ownVariables } = require('./inside.cjs');
const { decodeProgram, encodeProgram, loadContext, loadEvaluate, loadTypeScript, prepareInterruption, readFile } = require('./program.cjs');

const warm = [
  'assert', 'async_hooks', 'buffer', 'child_process', 'crypto', 'events', 'fs/promises', 'net', 'os', 'path', 'perf_hooks', 'stream',
  'stream/promises', 'string_decoder', 'timers', 'timers/promises', 'tty', 'url', 'util', 'vm',
];

let rehearsals = 0;
const REHEARSALS = 20; // after which V8 optimizes nothing more on this path
const REHEARSAL = 'console.log(import.meta.url, 1); process.stderr; callBinding({ n: 1 }); __return({ ok: true }); delete globalThis.__return; delete globalThis.callBinding; export {}';

// child is the module child.cjs.
function warmUp(child) {
  hideFlags();
  v8.setFlagsFromString('--no-flush-bytecode'); // children inherit compiled code
  // Modules that nearly every program uses: children share their compiled code.
  for (const name of warm) require(name);
  v8.setFlagsFromString('--no-lazy'); // as in zygote.cjs, now that Node's modules are loaded
  loadContext();
  loadEvaluate();
  loadTypeScript();
  v8.setFlagsFromString('--lazy');
  prepareInterruption();
  console.log(); // creates process.stdout, a pipe as in every child
  console.error();
  process.chdir('/');
  performance.now();
  collectGarbage(); // before the rehearsals, as it discards V8's type feedback
  v8.setFlagsFromString('--no-lazy-feedback-allocation'); // collects feedback from the first call
  v8.setFlagsFromString('--baseline-batch-compilation-threshold=0'); // leaves no started batch to children
  for (let i = 0; i < REHEARSALS; i++) rehearse(child);
  v8.setFlagsFromString('--baseline-batch-compilation-threshold=4096'); // V8's default
  finishCompiling();
  v8.setFlagsFromString('--lazy-feedback-allocation');
  v8.setFlagsFromString('--flush-bytecode'); // restores the flags: V8 tags cached data with their hash
}

// Returns internal arrays of Node: of its exit code and of its start times.
function takeInternals() {
  const { fields, internalBinding } = ownVariables(['fields', 'internalBinding']);
  return {
    exitInfo: checkExitInfo(fields),
    milestones: checkMilestones(internalBinding('performance').milestones),
  };
}

function checkExitInfo(fields) {
  process.exitCode = 77;
  const text = `${fields}`;
  process.exitCode = undefined;
  if (text !== '0,77,1' || fields[2] !== 0) throw new Error(`unknown exit info: ${text}`);
  return fields;
}

// The addon depends on their order. Milestones that Node has not reached yet are -1.
function checkMilestones(times) {
  const { environment, nodeStart, v8Start, loopStart, loopExit, bootstrapComplete } = performance.nodeTiming;
  const known = [0, environment, nodeStart, v8Start, loopStart, loopExit, bootstrapComplete];
  const isAt = (ms, i) => Math.abs((times[1 + i] === -1 ? -1 : (times[1 + i] - times[1]) / 1e6) - ms) < 1e-3;
  if (times.length !== 8 || times[0] / 1e3 !== performance.timeOrigin || !known.every(isAt)) throw new Error(`unknown milestones: ${times}`);
  return times;
}

// Runs the code path of a run, from the fork to its end. Descriptors 3 and 4 of a zygote, and of
// a child that waits for its program, are /dev/null.
function rehearse({ becomeRun, entry }) {
  const fatal = Object.getOwnPropertyDescriptor(process, '_fatalException');
  const path = `/dev/null/${rehearsals++}`; // a unique module, which can't be a file
  readFile();
  const program = { path, format: 'module', value: 1024, functions: [['callBinding']], args: 1024 };
  becomeRun(process.pid, [entry], decodeProgram(encodeProgram(program, REHEARSAL)));
  /^/.exec(''); // as Node does before the main module
  Module.runMain(entry);
  rehearseCalls(() => process._tickCallback()); // loads the module: the event loop does not run before the fork
  process.emit('beforeExit', 0);
  process.emit('exit', 0);
  Object.defineProperty(process, '_fatalException', fatal);
}

// A child copies each page that it writes to, and would write while it collects the garbage
// of Node's start. V8 adds no gc function to an existing context.
function collectGarbage() {
  v8.setFlagsFromString('--expose-gc');
  callNative('%ScheduleGCInStackCheck(); for (let i = 0; i < 2; i++);'); // a loop performs the stack check
  v8.setFlagsFromString('--no-expose-gc');
}

// Installs the code that V8 has compiled in the background. A small run then wakes no helper thread:
// with a second thread, each page that a run copies interrupts the processor of the other thread.
function finishCompiling() {
  callNative('%FinalizeOptimization()');
}

function callNative(source) {
  v8.setFlagsFromString('--allow-natives-syntax');
  new Function(source)();
  v8.setFlagsFromString('--no-allow-natives-syntax');
}

module.exports = { rehearse, takeInternals, warmUp };
