// gaol: --allow-net api.example.com
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import WebSocket from 'ws';
const ca = readFileSync(process.env.CA);
for (const url of ['ws://api.example.com/socket', 'wss://api.example.com/socket']) {
  const ws = new WebSocket(url, ['a'], { ca, perMessageDeflate: true });
  await once(ws, 'open');
  console.log(ws.protocol, ws.extensions);
  for (const text of ['hello', 'x'.repeat(1_000_000)]) {
    ws.send(text);
    const [data] = await once(ws, 'message');
    console.log(String(data) === text);
  }
  ws.ping('p');
  ws.send('again');
  const [pong] = await once(ws, 'pong');
  console.log(String(pong));
  ws.close(1000);
  console.log((await once(ws, 'close'))[0]);
}
