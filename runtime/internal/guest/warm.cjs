// Makes a Node that a run can be forked from: warm, tidy, and with at hand what of its
// inside a child has to know and to set.
'use strict';

const Module = require('node:module');
const v8 = require('node:v8');
const { entry } = require('./child.cjs');
const { hideFlags, ownVariables } = require('./inside.cjs');
const { begin, loadContext } = require('./program.cjs');

const warm = [
  'assert', 'buffer', 'child_process', 'crypto', 'events', 'fs/promises', 'net', 'os', 'path', 'perf_hooks', 'stream',
  'stream/promises', 'string_decoder', 'timers', 'timers/promises', 'tty', 'url', 'util',
];

let rehearsals = 0;
const REHEARSALS = 20; // then V8 finds nothing on the way worth optimising any more
const REHEARSAL = 'console.log(import.meta.url); export {}';

function warmUp() {
  hideFlags();
  v8.setFlagsFromString('--no-flush-bytecode'); // what is compiled once is so in every child
  // What nearly every program uses: its code is compiled, and its pages are shared.
  for (const name of warm) require(name);
  loadContext();
  console.log(); // makes process.stdout, a pipe here as in every child
  console.error();
  process.chdir('/');
  performance.now();
  collectGarbage(); // before the rehearsals: V8 forgets with it what it has learned of the code
  v8.setFlagsFromString('--no-lazy-feedback-allocation'); // learns from the first call on
  for (let i = 0; i < REHEARSALS; i++) rehearse();
  v8.setFlagsFromString('--lazy-feedback-allocation');
  v8.setFlagsFromString('--flush-bytecode'); // all flags are as they were: data of V8's is tagged with them
}

// What Node hides: the array of its exit code, and that of its times.
function takeInternals() {
  const { fields, internalBinding } = ownVariables(['fields', 'internalBinding']);
  return {
    exitInfo: checkExitInfo(fields),
    milestones: checkMilestones(internalBinding('performance').milestones),
  };
}

function checkExitInfo(fields) {
  process.exitCode = 77;
  const is = `${fields}`;
  process.exitCode = undefined;
  if (is !== '0,77,1' || fields[2] !== 0) throw new Error(`unknown exit info: ${is}`);
  return fields;
}

// The addon knows their order. Those that Node has not come to yet are -1.
function checkMilestones(times) {
  const { environment, nodeStart, v8Start, loopStart, loopExit, bootstrapComplete } = performance.nodeTiming;
  const known = [0, environment, nodeStart, v8Start, loopStart, loopExit, bootstrapComplete];
  const isAt = (ms, i) => Math.abs((times[1 + i] === -1 ? -1 : (times[1 + i] - times[1]) / 1e6) - ms) < 1e-3;
  if (times.length !== 8 || times[0] / 1e3 !== performance.timeOrigin || !known.every(isAt)) throw new Error(`unknown milestones: ${times}`);
  return times;
}

// Goes the way of a run from the fork to the end of its program.
function rehearse() {
  const path = `/dev/null/${rehearsals++}`; // each a module of its own, which can't be a file
  begin({ path, format: 'module', source: REHEARSAL }, entry);
  Module.runMain(entry);
  process._tickCallback(); // which loads it: the event loop does not turn before the fork
}

// A child copies each page that it writes to. To collect the garbage of the start is
// such writing. V8 has no function for it in a context that is there already.
function collectGarbage() {
  v8.setFlagsFromString('--expose-gc');
  v8.setFlagsFromString('--allow-natives-syntax');
  new Function('%ScheduleGCInStackCheck(); for (let i = 0; i < 2; i++);')(); // a loop checks the stack
  v8.setFlagsFromString('--no-allow-natives-syntax');
  v8.setFlagsFromString('--no-expose-gc');
}

module.exports = { rehearse, takeInternals, warmUp };
delete require.cache[__filename];
