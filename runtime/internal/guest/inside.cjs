// Reads internal variables of Node, which no module exports, through the inspector.
'use strict';

const { Session } = require('node:inspector');

// Returns the values of variables in the scopes of a function, by name.
function variablesOf(f, names) {
  const session = new Session();
  session.connect();
  const ask = (method, params) => {
    let answer;
    session.post(method, params, (err, result) => (answer = result)); // post calls back synchronously
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

// Returns variables in the scopes of the getter of process.exitCode. All other internals are
// reachable from them.
const ownVariables = (names) => variablesOf(Object.getOwnPropertyDescriptor(process, 'exitCode').get, names);

// Hides Node's own flags from node:test and node:bench, which pass them to their children.
// Node has already acted on them; it caches them in two lists. Node 22 has only the first.
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
