// Runs notebooks, lists of cells, given on standard input as JSON, each in a context of its
// own, by V8's REPL mode, and prints the values of their cells.
import inspector from 'node:inspector';
import vm from 'node:vm';
import { text } from 'node:stream/consumers';

const session = new inspector.Session();
session.connect();
let id;
session.on('Runtime.executionContextCreated', ({ params }) => { id = params.context.id; });
await new Promise((done) => session.post('Runtime.enable', done));

const evaluate = (expression) => new Promise((done) => session.post(
  'Runtime.evaluate',
  { expression, contextId: id, replMode: true, awaitPromise: true, returnByValue: true },
  (e, r) => done(e ? { exceptionDetails: { text: String(e) } } : r),
));

async function run(cells) {
  const context = vm.createContext({
    __named(module, ...asked) {
      context.__asked = asked;
      return module;
    },
    console, setTimeout, URL,
    __import: (name, options) => import(name, options).then((m) => ({ ...m, by: '__import' })),
    __meta: { dirname: '/here', url: 'file:///here' },
    __const: {},
    React: { createElement: (type, props, ...children) => ({ type, props, children }), Fragment: '' },
  }, { importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER });
  const values = [];
  for (const cell of cells) {
    const { result, exceptionDetails: e } = await evaluate(cell);
    if (e) values.push({ error: e.exception?.description ?? e.text });
    else values.push({ value: result.type === 'undefined' ? 'undefined' : JSON.stringify(result.value) });
  }
  return values;
}

const results = [];
for (const cells of JSON.parse(await text(process.stdin))) results.push(await run(cells));
console.log(JSON.stringify(results));
