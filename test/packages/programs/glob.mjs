import { mkdirSync, writeFileSync } from 'node:fs';
import { glob } from 'glob';
mkdirSync('/tmp/g/a/b', { recursive: true });
for (const f of ['x.js', 'a/y.js', 'a/b/z.ts']) writeFileSync(`/tmp/g/${f}`, '');
console.log((await glob('**/*.{js,ts}', { cwd: '/tmp/g' })).sort());
