// Prints a number of 64 KiB pieces without pause.
import { once } from 'node:events';

const piece = Buffer.alloc(64 << 10, 'all the same, but for the pipe ');
for (let left = Number(process.argv[2]); left > 0; left--) {
  if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
}
