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

// progress sends notifications about a run: soon after it prints something, and regularly. It sends none to a client
// that has not asked for them.
type progress struct {
	last atomic.Pointer[string] // line of output that was not sent
	stop func()
}

// newProgress begins notifications. The caller calls stop before it returns the result.
func newProgress(ctx context.Context, r *mcp.CallToolRequest) *progress {
	token := r.Params.GetProgressToken()
	if token == nil {
		return &progress{stop: func() {}}
	}
	p := &progress{}
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	p.stop = func() { cancel(); sending.Wait() }
	sending.Go(func() {
		p.each(ctx, func(text string, spent time.Duration) {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // the client may have gone
				ProgressToken: token, Progress: spent.Seconds(), Message: text,
			})
		})
	})
	return p
}

// each calls send with lines of output, and with the time that the run has taken if there are none for some time.
func (p *progress) each(ctx context.Context, send func(text string, spent time.Duration)) {
	began := time.Now()
	sent := began
	tick := time.NewTicker(progressPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		spent := time.Since(began)
		if text := p.last.Swap(nil); text != nil {
			send(*text, spent)
		} else if time.Since(sent) >= heartbeat {
			send(fmt.Sprintf("running for %d s", int(spent.Seconds())), spent)
		} else {
			continue
		}
		sent = time.Now()
	}
}

// maxNote bounds the bytes of output in which a note looks for the last line.
const maxNote = 1000

// note reports output. It replaces an earlier note that was not sent.
func (p *progress) note(output []byte) {
	if text := oneLine(string(output[max(0, len(output)-maxNote):])); text != "" {
		p.last.Store(&text)
	}
}
