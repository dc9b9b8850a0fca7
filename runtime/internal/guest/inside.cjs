// What Node has inside and no module exports, which the debugger tells of.
'use strict';

const { Session } = require('node:inspector');

// Variables that a function sees.
function variablesOf(f, names) {
  const session = new Session();
  session.connect();
  const ask = (method, params) => {
    let answer;
    session.post(method, params, (err, result) => (answer = result)); // at once
    return answer;
  };
  const properties = ({ objectId }) => ask('Runtime.getProperties', { objectId, ownProperties: true });
  globalThis.found = f;
  const remote = ask('Runtime.evaluate', { expression: 'found' }).result;
  const scopes = properties(remote).internalProperties.find(({ name }) => name === '[[Scopes]]').value;
  const variables = properties(scopes).result.filter(({ value }) => value.description !== 'Global').flatMap(({ value }) => properties(value).result);
  const values = names.map((wanted) => {
    const { objectId } = variables.find(({ name }) => name === wanted).value;
    ask('Runtime.callFunctionOn', { objectId, functionDeclaration: 'function () { found = this }' });
    return [wanted, globalThis.found];
  });
  session.disconnect();
  delete globalThis.found;
  return Object.fromEntries(values);
}

// Variables of what makes process.exitCode, on which the rest hangs.
const ownVariables = (names) => variablesOf(Object.getOwnPropertyDescriptor(process, 'exitCode').get, names);

// Hides the flags that Node was started with from the children of node:test and node:bench,
// to which it passes them on. It has acted on ours, and keeps them in lists that it makes
// once. Node 22 has only the first.
function hideFlags() {
  const { getOptionValue, getOptionsAsFlagsFromBinding } = ownVariables(['require']).require('internal/options');
  getOptionValue('--require').length = 0;
  const flags = getOptionsAsFlagsFromBinding?.() ?? [];
  for (const own of process.execArgv) {
    const at = flags.indexOf(own);
    if (at >= 0) flags.splice(at, 1);
  }
}

module.exports = { hideFlags, ownVariables };
delete require.cache[__filename];
