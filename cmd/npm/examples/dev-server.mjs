// A user's web server runs in a sandbox, and this process sends requests to it.
import { NodeRuntime } from "gaol";

const server = `
import http from "node:http";
http.createServer((request, response) => {
  if (request.url === "/health") return response.end(JSON.stringify({ ok: true }));
  response.writeHead(200, { "content-type": "text/plain" }).end("you asked for " + request.url);
}).listen(3000, "127.0.0.1");
`;

// Listening needs the network, although nothing leaves the sandbox.
const listen = { mode: "allow", operations: ["listen"], patterns: ["tcp://localhost:*"] };
const runtime = await NodeRuntime.create({ permissions: { network: { default: "deny", rules: [listen] } } });
try {
  const child = await runtime.spawn(server);
  const { host, port } = await runtime.waitForListener({ port: 3000 });
  console.log(`listens on ${host}:${port}`);
  const health = await runtime.fetch(3000, { path: "/health" });
  console.log("health:", health.status, health.body);
  const page = await runtime.fetch(3000, { path: "/page?x=1" });
  console.log("page:", page.headers["content-type"], page.body);
  child.kill();
  console.log("stopped with status", await child.wait());
} finally {
  await runtime.dispose();
}
