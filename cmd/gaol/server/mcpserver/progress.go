package mcpserver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// progressPause is the least time between two notifications.
	progressPause = 250 * time.Millisecond

	// heartbeat is the most time between two: clients end calls that seem to hang.
	heartbeat = 5 * time.Second
)

// maxNote bounds the bytes of output in which a note looks for the last line.
const maxNote = 1000

// newProgress begins notifications about a run: soon after it prints something, and regularly. A client that has not
// asked for them gets none. The caller reports output by note, which replaces what was not sent yet, and calls stop
// before it returns the result.
func newProgress(ctx context.Context, r *mcp.CallToolRequest) (note func([]byte), stop func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func([]byte) {}, func() {}
	}
	var last atomic.Pointer[string]
	note = func(output []byte) {
		if text := oneLine(string(output[max(0, len(output)-maxNote):])); text != "" {
			last.Store(&text)
		}
	}
	began := time.Now()
	sent := began
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() {
		for wait(ctx, progressPause) {
			text, spent := last.Swap(nil), time.Since(began)
			switch {
			case text != nil:
			case time.Since(sent) < heartbeat:
				continue
			default:
				text = new(fmt.Sprintf("running for %d s", int(spent.Seconds())))
			}
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // the client may have gone
				ProgressToken: token, Progress: spent.Seconds(), Message: *text,
			})
			sent = time.Now()
		}
	})
	return note, func() { cancel(); sending.Wait() }
}

// wait waits, and reports whether ctx has not ended.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
