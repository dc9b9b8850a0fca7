const express = require('express');
const inject = require('light-my-request');
const app = express();
app.use(express.json());
app.get('/users/:id', (req, res) => res.json({ id: req.params.id, q: req.query }));
app.post('/sum', (req, res) => res.send(String(req.body.reduce((a, b) => a + b))));
(async () => {
  const get = await inject(app, { url: '/users/7?x=1' });
  console.log(get.statusCode, get.headers['content-type'], get.body);
  const post = await inject(app, { method: 'POST', url: '/sum', payload: [1, 2, 3] });
  console.log(post.statusCode, post.body, (await inject(app, { url: '/none' })).statusCode);
})();
