// File-heavy: many small files, written, listed, read and removed, in the working directory.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const rounds = Number(process.argv[2]);
const body = 'x'.repeat(3000);
const root = mkdtempSync('files-');
let bytes = 0;
for (let i = 0; i < rounds; i++) {
  const dir = join(root, `${i}`);
  mkdirSync(dir);
  for (let j = 0; j < 100; j++) {
    writeFileSync(join(dir, `${j}.tmp`), body + j);
    renameSync(join(dir, `${j}.tmp`), join(dir, `${j}.txt`));
  }
  for (const name of readdirSync(dir)) bytes += statSync(join(dir, name)).size + readFileSync(join(dir, name), 'utf8').length;
  await Promise.all(Array.from({ length: 20 }, async (_, j) => {
    await writeFile(join(dir, `${j}.async`), body);
    const { length } = await readFile(join(dir, `${j}.async`));
    bytes += length;
  }));
  rmSync(dir, { recursive: true });
}
rmSync(root, { recursive: true });
console.log('files', bytes);
