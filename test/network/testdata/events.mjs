// Reads an event stream, connects again after its end, and closes it after the sixth event.
import fs from 'node:fs';
import tls from 'node:tls';

tls.setDefaultCACertificates([fs.readFileSync(process.env.CA, 'utf8')]);
const base = process.argv[2];

async function* events(signal) {
  let id = '';
  for (;;) {
    const headers = id ? { 'last-event-id': id } : {};
    const res = await fetch(base + '/events', { headers, signal });
    console.log(res.status, res.headers.get('content-type'), res.headers.get('cache-control'));
    let text = '';
    for await (const part of res.body.pipeThrough(new TextDecoderStream())) {
      text += part;
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const event = Object.groupBy(text.slice(0, end).split('\n'), (line) => line.split(':')[0]);
        id = event.id[0].slice(4);
        yield event;
      }
    }
    console.log('the stream ended');
  }
}

const controller = new AbortController();
try {
  for await (const event of events(controller.signal)) {
    console.log(JSON.stringify(event));
    await fetch(base + '/next');
    if (event.id[0] === 'id: 6') {
      controller.abort();
    }
  }
} catch (err) {
  console.log(err.name);
}
console.log(await (await fetch(base + '/closed')).text());
