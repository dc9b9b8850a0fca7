// Exchanges folders for links that lead out, and files for FIFOs, as fast as it can, in
// each of the places, and creates again what the host has removed.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';

const { places, links } = JSON.parse(process.env.RACE);

const quiet = (f) => {
  try {
    f();
  } catch {} // the host was faster
};

const lay = (at, pipes) => {
  // If the host interfered, e did not become d again, and has to be removed.
  for (const name of ['e', 'moved']) quiet(() => rmSync(`${at}/${name}`, { recursive: true }));
  quiet(() => mkdirSync(`${at}/d/sub`, { recursive: true }));
  for (const name of ['d/canary', 'd/sub/canary', 'f']) {
    quiet(() => writeFileSync(`${at}/${name}`, 'own', { flag: 'wx' })); // does not open a FIFO
  }
  if (pipes && !existsSync(`${at}/p`)) quiet(() => execFileSync('mkfifo', [`${at}/p`]));
};

for (const at of places) lay(at, true);
console.log('up');
for (let round = 1; ; round++) {
  const link = links[round % links.length];
  for (const at of places) {
    quiet(() => symlinkSync(link, `${at}/l`));
    quiet(() => renameSync(`${at}/d`, `${at}/e`));
    quiet(() => renameSync(`${at}/l`, `${at}/d`));
    quiet(() => renameSync(`${at}/f`, `${at}/g`));
    quiet(() => renameSync(`${at}/p`, `${at}/f`));
    quiet(() => unlinkSync(`${at}/d`));
    quiet(() => renameSync(`${at}/e`, `${at}/d`));
    quiet(() => renameSync(`${at}/f`, `${at}/p`));
    quiet(() => renameSync(`${at}/g`, `${at}/f`));
    if (round % 8 === 0) lay(at, round % 2000 === 0);
  }
}
