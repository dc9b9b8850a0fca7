// gaol: --allow-net api.example.com:6379 --allow-net api.example.com:6380
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { Redis } from 'ioredis';
const ca = readFileSync(process.env.CA);
const servername = 'api.example.com'; // without it the client sends none
const options = { host: servername, password: 'sesame' };
for (const o of [options, { ...options, port: 6380, tls: { ca, servername } }]) {
  const redis = new Redis(o);
  await redis.flushall();
  await redis.set('a', 'x'.repeat(1_000_000));
  console.log((await redis.get('a')).length);
  const pipeline = redis.pipeline();
  for (let i = 0; i < 1000; i++) pipeline.incrby('n', i);
  console.log((await pipeline.exec()).at(-1));
  const other = redis.duplicate();
  await other.subscribe('news');
  const message = once(other, 'message');
  await redis.publish('news', 'hello');
  console.log(await message);
  const third = redis.duplicate();
  const popped = third.blpop('list', 0);
  await redis.lpush('list', 'item');
  console.log(await popped);
  for (const client of [redis, other, third]) client.disconnect();
}
const untrusted = new Redis({ ...options, port: 6380, tls: { servername }, lazyConnect: true, retryStrategy: () => null });
untrusted.on('error', (err) => console.log(err.code));
await untrusted.connect().catch(() => {});
