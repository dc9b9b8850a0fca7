import { minify, transform } from '@swc/core';
const { code } = await transform('enum E { A, B } const f = (x?: E): number => x ?? E.B; export default f', { jsc: { parser: { syntax: 'typescript' }, target: 'es2019' } });
console.log(code);
console.log((await minify('function add(first, second) { return first + second } console.log(add(1, 2))', { compress: true, mangle: true })).code);
