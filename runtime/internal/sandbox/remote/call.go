package remote

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"time"

	"gaol/jail/kernel"
	"gaol/runtime/internal/agent"
)

// commandCall is a call of a command of the host.
type commandCall struct {
	sandbox *Sandbox
	agent.Number
	open  context.Context // until Close, or the agent is late
	close context.CancelCauseFunc

	mu   sync.Mutex
	late *time.Timer
}

// Arguments implements sandbox.CommandCall.
func (c *commandCall) Arguments(most int64) ([]string, error) {
	data, err := c.sandbox.bytes(c.open, "arguments", agent.Most{Number: c.Number, Most: most}, most)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	text, ended := strings.CutSuffix(string(data), "\x00")
	if !ended {
		return nil, errAgent
	}
	return strings.Split(text, "\x00"), nil
}

// Input implements sandbox.CommandCall.
func (c *commandCall) Input(most int64) ([]byte, error) {
	return c.sandbox.bytes(c.open, "input", agent.Most{Number: c.Number, Most: most}, most)
}

// Reply implements sandbox.CommandCall.
func (c *commandCall) Reply(output, failures []byte, status uint8) error {
	_, err := call[json.RawMessage](c.open, c.sandbox, "reply", agent.Output{Number: c.Number, Output: output, Errors: failures, Status: status})
	return err
}

// Wait implements sandbox.CommandCall.
func (c *commandCall) Wait() {
	_, _ = call[json.RawMessage](c.open, c.sandbox, "wait", c.Number) // it has ended with the sandbox
}

// SetDeadline implements sandbox.CommandCall. The agent ends methods that are late. If it does not, they end soon afterwards.
func (c *commandCall) SetDeadline(at time.Time) error {
	c.expect(at)
	in := agent.Deadline{Number: c.Number}
	if !at.IsZero() {
		in.Within = max(1, time.Until(at))
	}
	return c.sandbox.do("deadline", in)
}

// expect sets the time after which the agent is late. The zero time means never.
func (c *commandCall) expect(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != nil {
		c.late.Stop()
	}
	if c.late = nil; !at.IsZero() {
		c.late = time.AfterFunc(time.Until(at)+kernel.Timeout(answerTime), func() { c.close(errLate) })
	}
}

// Close implements sandbox.CommandCall.
func (c *commandCall) Close() {
	c.expect(time.Time{})
	c.close(net.ErrClosed)
	go func() { _ = c.sandbox.do("closeCall", c.Number) }() // it has ended with the sandbox
}
