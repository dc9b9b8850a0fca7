import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
writeFileSync('package.json', '{"jest": {"watchman": false}}');
writeFileSync('sum.test.js', `
test('adds', () => expect([1, 2]).toEqual([1, 2]));
test('mocks', () => { const f = jest.fn().mockReturnValue(2); expect(f()).toBe(2); });
`);
const out = execFileSync(process.execPath, ['node_modules/jest/bin/jest.js', '--json'], { encoding: 'utf8' });
const { numPassedTests, numFailedTests, success } = JSON.parse(out);
console.log({ numPassedTests, numFailedTests, success });
