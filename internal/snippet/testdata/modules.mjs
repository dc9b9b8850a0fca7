// Imports each module named on standard input, as JSON, and prints what became of it: the
// value that it delivered, as JSON, and how often it delivered one.
import { text } from 'node:stream/consumers';

const results = [];
globalThis.React = { createElement: (type, props, ...children) => ({ type, props, children }), Fragment: '' };
for (const file of JSON.parse(await text(process.stdin))) {
  const result = { value: 'nothing delivered', calls: 0 };
  let delivered;
  globalThis.__evaluated = (...values) => {
    result.calls++;
    delivered = values[0];
  };
  try {
    await import(file);
    if (result.calls) result.value = JSON.stringify(await delivered) ?? 'undefined';
  } catch (e) {
    result.error = String(e);
    result.stack = String(e?.stack);
  }
  results.push(result);
}
console.log(JSON.stringify(results));
