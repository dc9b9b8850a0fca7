import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
writeFileSync('spec.cjs', `const assert = require('node:assert');
describe('arrays', () => { it('finds', () => assert.equal([1, 2].indexOf(2), 1)); it('waits', async () => { await null; }); });
`);
const out = execFileSync(process.execPath, ['node_modules/mocha/bin/mocha.js', '--reporter=json', 'spec.cjs'], { encoding: 'utf8' });
const { tests, passes, failures } = JSON.parse(out).stats;
console.log({ tests, passes, failures });
