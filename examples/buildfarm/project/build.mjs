// Makes a page of HTML from each file in pages.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { slug } from 'slug';

mkdirSync('dist', { recursive: true });
for (const name of readdirSync('pages')) {
  const title = name.replace(/\.md$/, '');
  const text = readFileSync(`pages/${name}`, 'utf8').trim();
  writeFileSync(`dist/${slug(title)}.html`, `<h1>${title}</h1>\n<p>${text}</p>\n`);
}
