import { $, execa } from 'execa';
const { stdout } = await execa('node', ['-p', '6 * 7']);
console.log(stdout, (await $`echo one two`.pipe`wc -w`).stdout.trim());
console.log(await execa('node', ['-e', 'process.exit(3)'], { reject: false }).then(({ exitCode, failed }) => ({ exitCode, failed })));
