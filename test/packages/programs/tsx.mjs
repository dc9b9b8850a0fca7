import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
writeFileSync('/tmp/main.ts', 'import os from "node:os";\nenum E { A = 41 }\nconst n: number = E.A + 1;\nconsole.log(n, os.EOL.length);\n');
const cli = createRequire(import.meta.url).resolve('tsx/cli');
console.log(execFileSync(process.execPath, [cli, '/tmp/main.ts'], { encoding: 'utf8' }));
