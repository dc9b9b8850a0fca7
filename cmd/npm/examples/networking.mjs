// Sockets of the sandbox are its own. External hosts are allowed by name.
import { NodeRuntime } from "gaol";

const permissions = {
  network: {
    default: "deny",
    rules: [
      { mode: "allow", operations: ["*"], patterns: ["localhost"] },
      { mode: "allow", operations: ["*"], patterns: ["api.example.com"] },
    ],
  },
};
const runtime = await NodeRuntime.create({ permissions });
try {
  const { value } = await runtime.run(`
    import http from "node:http";
    import net from "node:net";
    const listening = (server, port) => new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
    const web = http.createServer((request, response) => response.end("served " + request.url));
    await listening(web, 8080);
    const echo = net.createServer((socket) => socket.pipe(socket));
    await listening(echo, 9000);

    const text = await (await fetch("http://localhost:8080/inside")).text();
    const echoed = await new Promise((resolve, reject) => {
      const socket = net.connect(9000, "127.0.0.1", () => socket.end("echo"));
      socket.on("data", (data) => resolve(data.toString())).on("error", reject);
    });
    const other = await fetch("http://other.test/").then(() => "reached", () => "denied");
    web.close();
    echo.close();
    __return({ text, echoed, other });
  `, { timeout: 30_000 });
  for (const [name, result] of Object.entries(value)) console.log(`${name}: ${result}`);
} finally {
  await runtime.dispose();
}
