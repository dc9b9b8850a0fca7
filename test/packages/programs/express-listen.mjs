// gaol: --allow-net tcp://localhost:*
import express from 'express';
const app = express();
app.get('/', (req, res) => res.json({ host: req.hostname }));
const server = app.listen(0, '127.0.0.1', async () => {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
  console.log(answer.status, await answer.json());
  server.close();
});
