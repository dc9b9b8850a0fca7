import { writeFileSync } from 'node:fs';
import { run } from 'node:test';
writeFileSync('/tmp/one.test.mjs', `import { test } from 'node:test'; test('a', () => {}); test('b', () => { throw new Error('no'); });`);
const stream = run({ files: ['/tmp/one.test.mjs'] });
const seen = [];
stream.on('test:pass', ({ name }) => seen.push(`pass ${name}`));
stream.on('test:fail', ({ name }) => seen.push(`fail ${name}`));
stream.on('end', () => console.log(seen.filter((line) => / [ab]$/.test(line))));
stream.resume();
