// gaol: --allow-net tcp://localhost:*
import { WebSocket, WebSocketServer } from 'ws';
const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
server.on('connection', (ws) => ws.on('message', (data) => ws.send(`echo ${data}`)));
server.on('listening', () => {
  const client = new WebSocket(`ws://127.0.0.1:${server.address().port}`);
  client.on('open', () => client.send('hello'));
  client.on('message', (data) => {
    console.log(String(data));
    client.close();
    server.close();
  });
});
