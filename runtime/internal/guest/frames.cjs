// Removes gaol's frames from stack traces before the program can read them. It is for processes in which
// gaol's code calls that of the program: contexts, and evaluations that can be interrupted.
'use strict';

const { Error, Object, method, startsWith } = require('./intrinsics.cjs');

const OURS = `${__dirname}/`;

// Makes V8 pass stack traces to Node, and to Error.prepareStackTrace, without gaol's frames and the frames of
// Node around them.
function hideFrames({ internalBinding, internalRequire }) {
  const { prepareStackTraceCallback: prepare } = internalRequire('internal/errors'); // Node's own
  const { setPrepareStackTraceCallback } = internalBinding('errors');
  let fileOf;
  setPrepareStackTraceCallback((_, err, trace) => {
    fileOf = method(Object.getPrototypeOf(trace[0]).getFileName); // before the program can replace it
    return err;
  });
  void new Error().stack;
  setPrepareStackTraceCallback((global, err, trace) => prepare(global, err, withoutOurs(trace, fileOf)));
}

function withoutOurs(trace, fileOf) {
  const kept = [];
  let end = 0; // of what precedes the last frames of Node and gaol in kept
  let ours = false; // whether one of these is gaol's
  for (let i = 0; i < trace.length; i++) {
    const file = fileOf(trace[i]);
    const isOurs = typeof file === 'string' && startsWith(file, OURS);
    const isNodes = typeof file === 'string' && startsWith(file, 'node:');
    if (!isOurs && !isNodes) {
      if (ours) kept.length = end;
      end = kept.length + 1;
      ours = false;
    }
    ours ||= isOurs;
    kept[kept.length] = trace[i];
  }
  if (ours) kept.length = end;
  return kept;
}

module.exports = { hideFrames };
