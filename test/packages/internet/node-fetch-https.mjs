// gaol: --allow-net api.example.com
import { readFileSync } from 'node:fs';
import https from 'node:https';
import { Readable } from 'node:stream';
import fetch from 'node-fetch';
const agent = new https.Agent({ ca: readFileSync(process.env.CA), keepAlive: true });
for (const base of ['http://api.example.com', 'https://api.example.com']) {
  const o = base.startsWith('https') ? { agent } : {};
  console.log(await (await fetch(base + '/echo?q=1', o)).json());
  console.log(await (await fetch(base + '/echo', { ...o, method: 'POST', body: Readable.from(['a', 'b', 'c'.repeat(100000)]) })).json());
  console.log((await (await fetch(base + '/gzip', o)).text()).length);
  console.log(await (await fetch(base + '/redirect', o)).text());
  let size = 0;
  for await (const part of (await fetch(base + '/stream', o)).body) size += part.length;
  console.log(size);
  await fetch(base + '/wait', { ...o, signal: AbortSignal.timeout(100) }).catch((err) => console.log(err.name));
}
await fetch('https://api.example.com/').catch((err) => console.log(err.code));
agent.destroy();
