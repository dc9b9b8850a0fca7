// A small program that prints, and hands a value back where there is somebody to take it.
console.log('hello');
globalThis.__return?.({ answer: 6 * 7 });
