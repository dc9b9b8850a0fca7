// Every page has text.
import { readdirSync, readFileSync } from 'node:fs';

for (const name of readdirSync('dist')) {
  if (readFileSync(`dist/${name}`, 'utf8').includes('<p></p>')) throw new Error(`${name} is empty`);
}
