package network

import (
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// Connections with data that a server does not read end soon after the run.
func TestLeftConnections(t *testing.T) {
	serveInternet(t)
	serveFloods(t)
	const fill = `
import net from 'node:net';
const part = Buffer.alloc(4 << 20);
const sockets = await Promise.all(Array.from({ length: 20 }, () => new Promise((done, fail) => {
	const s = net.connect(7, '93.184.215.14').on('error', fail);
	s.once('data', () => { s.write(part); done(s); });
})));
const written = () => sockets.reduce((sum, s) => sum + s.bytesWritten - s.writableLength, 0);
for (let last = -1; last !== written();) { last = written(); await new Promise(done => setTimeout(done, 300)); }
__return({ n: String(sockets.length) });
process.exit();`
	eachLauncher(t, floodRules, func(t *testing.T, rt *runtime.NodeRuntime) {
		if got, _ := attempts(t, rt, fill); got["n"] != "20" {
			t.Errorf("got %v", got)
		}
		harness.WaitFor(t, "no connection to the server is left", func() bool { return established(7) == 0 })
	})
}
