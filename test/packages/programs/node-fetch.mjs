// gaol: --allow-net tcp://localhost:*
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import fetch, { FormData } from 'node-fetch';
const server = createServer(async (req, res) => {
  let size = 0;
  for await (const part of req) size += part.length;
  res.setHeader('content-encoding', 'gzip').end(gzipSync(JSON.stringify({ method: req.method, some: size > 0 })));
}).listen(0, '127.0.0.1', async () => {
  const form = new FormData();
  form.set('name', 'value');
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { method: 'POST', body: form });
  console.log(answer.status, await answer.json());
  console.log(await (await fetch('data:text/plain,hello')).text());
  server.close();
});
