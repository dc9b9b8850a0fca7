// A small program that prints, and in a jail returns a value.
console.log('hello', 'world');
globalThis.__return?.({ answer: 6 * 7 });
