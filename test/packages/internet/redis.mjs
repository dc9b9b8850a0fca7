// gaol: --allow-net api.example.com:6379 --allow-net api.example.com:6380
import { readFileSync } from 'node:fs';
import { createClient } from 'redis';
const ca = readFileSync(process.env.CA);
const servername = 'api.example.com'; // without it the client sends none
const silent = () => {};
for (const [url, socket] of [['redis://:sesame@api.example.com', {}], ['rediss://:sesame@api.example.com:6380', { tls: true, ca, servername }]]) {
  const client = createClient({ url, socket });
  await client.connect();
  await client.flushAll();
  await client.set('a', 'x'.repeat(1_000_000));
  console.log((await client.get('a')).length, await client.strLen('a'));
  console.log((await Promise.all(Array.from({ length: 1000 }, (_, i) => client.incrBy('n', i)))).at(-1));
  console.log(await client.multi().hSet('h', 'k', 'v').hGetAll('h').exec());
  const other = client.duplicate();
  await other.connect();
  const message = new Promise((done) => other.subscribe('news', (text) => done(text)));
  while ((await client.publish('news', 'hello')) === 0);
  console.log(await message);
  other.destroy();
  await client.close();
}
const wrong = createClient({ url: 'redis://:wrong@api.example.com', socket: { reconnectStrategy: false } }).on('error', silent);
await wrong.connect().catch((err) => console.log(err.message));
const untrusted = createClient({ url: 'rediss://api.example.com:6380', socket: { tls: true, servername, reconnectStrategy: false } }).on('error', silent);
await untrusted.connect().catch((err) => console.log(err.code));
