// Imports each module named on standard input, as JSON, and prints what became of it: the
// value that it delivered, as JSON, and how often it delivered one.
import { text } from 'node:stream/consumers';

const results = [];
globalThis.React = { createElement: (type, props, ...children) => ({ type, props, children }), Fragment: '' };
for (const file of JSON.parse(await text(process.stdin))) {
  const result = { value: 'nothing delivered', calls: 0 };
  globalThis.__evaluated = (...values) => {
    result.calls++;
    result.value = JSON.stringify(values[0]) ?? 'undefined';
  };
  try {
    await import(file);
  } catch (e) {
    result.error = String(e);
    result.stack = String(e?.stack);
  }
  results.push(result);
}
console.log(JSON.stringify(results));
