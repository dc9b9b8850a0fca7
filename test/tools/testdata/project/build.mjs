// Compiles src to dist: strips types, and replaces imports of .ts by .js.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';

mkdirSync('dist', { recursive: true });
for (const name of readdirSync('src')) {
  const text = stripTypeScriptTypes(readFileSync(`src/${name}`, 'utf8')).replaceAll(/from '(\..*?)\.ts'/g, "from '$1.js'");
  writeFileSync(`dist/${name.replace(/\.ts$/, '.js')}`, text);
}
console.log('built', readdirSync('dist').join(' '));
