package session

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coder/websocket"

	protocol "gaol/internal/session"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// contentRequests are requests about files and connections, with many ways to go wrong.
var contentRequests = []string{
	`"readFile","params":{"sandbox":"SB","path":"/workspace/file"}`,
	`"readFile","params":{"sandbox":"SB","path":"/workspace"}`,
	`"writeFile","params":{"sandbox":"SB","path":"/workspace/file"}`,
	`"writeFile","params":{"sandbox":"SB","pathBytes":"L3dvcmtzcGFjZS//","createParents":true,"mode":"600"}`,
	`"writeFile","params":{"sandbox":"SB","path":"/etc/passwd"}`,
	`"statFile","params":{"sandbox":"SB","path":"/workspace/file","links":true}`,
	`"listFiles","params":{"sandbox":"SB","path":"/workspace","recursive":true}`,
	`"moveFile","params":{"sandbox":"SB","from":"/workspace/file","to":"/workspace/moved"}`,
	`"removeFile","params":{"sandbox":"SB","path":"/workspace/moved","recursive":true}`,
	`"makeFolder","params":{"sandbox":"SB","path":"/workspace/moved"}`,
	`"packFolder","params":{"sandbox":"SB","path":"/workspace"}`,
	`"unpackFolder","params":{"sandbox":"SB","path":"/workspace/tar","createParents":true}`,
	`"dial","stdin":true,"events":true,"params":{"sandbox":"SB","port":3000}`,
	`"dial","stdin":true,"events":true,"params":{"sandbox":"SB","port":3001}`,
	`"listListeners","params":{"sandbox":"SB"}`,
	`"waitForPort","params":{"sandbox":"SB","port":3001,"timeoutMs":1}`,
	`"getUsage","params":{"sandbox":"SB"}`,
}

// randomFrame returns the nth frame: a request, or something for one of the last requests. A few break
// the protocol.
func randomFrame(r *rand.Rand, n uint32, sandbox string) []byte {
	earlier := n - r.Uint32N(8)
	switch k := r.IntN(100); {
	case k < 10:
		return protocol.Append(nil, protocol.KindCancel, earlier)
	case k < 25:
		return protocol.Append(nil, protocol.KindStdin, earlier)
	case k < 50:
		return protocol.Append(nil, protocol.KindStdin, earlier, make([]byte, r.IntN(protocol.MaxChunk+1)))
	case k < 51:
		return protocol.AppendCredit(nil, earlier, protocol.Stdout, r.Uint32N(2048))
	}
	text := strings.ReplaceAll(contentRequests[r.IntN(len(contentRequests))], "SB", sandbox)
	return protocol.Append(nil, protocol.KindRequest, n, []byte(`{"method":`+text+`}`))
}

// TestRandomFrames: random frames about files and connections of a sandbox break nothing but their own
// session.
func TestRandomFrames(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := dial(t, s)
	sb := newServer(t, c, echoServer)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 4 {
		sendRandomFrames(t, newRaw(t, s, `{}`), r, sb.ID())
	}
	harness.WaitFor(t, "the sessions have ended", func() bool {
		list, err := c.Sandboxes(soon(t))
		return err == nil && len(list) == 1
	})
	if u, err := sb.Usage(soon(t)); err != nil || u.Processes != 1 {
		t.Errorf("%v %+v", err, u)
	}
	harness.WaitFor(t, "the guest's connections are closed", func() bool {
		u, err := sb.Usage(soon(t))
		return err == nil && u.Connections == 0
	})
	if files, _, err := sb.FS().List(soon(t), "/", client.ListOptions{Limit: 1}); err != nil || len(files) != 1 {
		t.Errorf("%v %v", err, files)
	}
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the server's log: %s", text)
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// sendRandomFrames sends frames until the server closes the session, or breaks the connection after
// enough of them.
func sendRandomFrames(t *testing.T, w *raw, r *rand.Rand, sandbox string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := w.next(); err != nil {
				return
			}
		}
	}()
	for n := range uint32(100) {
		if w.Write(soon(t), websocket.MessageBinary, randomFrame(r, 10+n, sandbox)) != nil {
			break
		}
	}
	_ = w.CloseNow()
	<-ended
}
