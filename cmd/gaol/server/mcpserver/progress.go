package mcpserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// progressPause is the least time between two notifications.
	progressPause = 250 * time.Millisecond

	// heartbeat is the most time between two: clients end calls that seem to hang.
	heartbeat = 5 * time.Second
)

// progress sends notifications about a run: immediately when it prints something, and regularly. Its
// methods do nothing for a client that has not asked for them.
type progress struct {
	notes chan string
	stop  func()
}

// newProgress begins notifications. The caller calls stop before it returns the result.
func newProgress(ctx context.Context, r *mcp.CallToolRequest) *progress {
	token := r.Params.GetProgressToken()
	if token == nil {
		return &progress{stop: func() {}}
	}
	p := &progress{notes: make(chan string, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	p.stop = func() { cancel(); sending.Wait() }
	began := time.Now()
	sending.Go(func() {
		p.each(ctx, func(text string) {
			spent := time.Since(began)
			if text == "" {
				text = fmt.Sprintf("running for %d s", int(spent.Seconds()))
			}
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // the client may have gone
				ProgressToken: token, Progress: spent.Seconds(), Message: text,
			})
		})
	})
	return p
}

// each calls send with notes, and with "" if there are none for some time.
func (p *progress) each(ctx context.Context, send func(string)) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		text := ""
		select {
		case <-ctx.Done():
			return
		case text = <-p.notes:
		case <-beat.C:
		}
		send(text)
		select {
		case <-ctx.Done():
			return
		case <-time.After(progressPause):
		}
	}
}

// maxNote bounds the bytes of output in which a note looks for the last line.
const maxNote = 1000

// note reports output. While a notification is being sent, earlier notes are dropped.
func (p *progress) note(output []byte) {
	text := oneLine(string(output[max(0, len(output)-maxNote):]))
	if p.notes == nil || text == "" {
		return
	}
	for {
		select {
		case p.notes <- text:
			return
		default:
		}
		select {
		case <-p.notes:
		default:
		}
	}
}
