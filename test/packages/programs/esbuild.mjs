import { mkdirSync, writeFileSync } from 'node:fs';
import { build, transform } from 'esbuild';
mkdirSync('/tmp/es', { recursive: true });
writeFileSync('/tmp/es/a.ts', 'import { b } from "./b"; console.log(b satisfies number)');
writeFileSync('/tmp/es/b.ts', 'export const b: number = 42; export const unused = 1');
const { outputFiles } = await build({ entryPoints: ['/tmp/es/a.ts'], bundle: true, write: false, minify: true, format: 'esm' });
console.log(outputFiles[0].text, (await transform('let x: number = <number>1', { loader: 'ts' })).code);
