package session

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"gaol/cmd/gaol/server/service"
)

func addPorts(m *methodSet) {
	addUse(m, "listeners", func(t *task, sb *service.Sandbox, _ SandboxParams) (any, error) {
		list, err := sb.ListListeners(t.ctx)
		return listenerList{list}, err
	})
	addUse(m, "waitForListener", func(t *task, sb *service.Sandbox, p waitParams) (any, error) {
		return sb.WaitForPort(t.ctx, p.Port, p.PortWait)
	})
	addUse(m, "dial", dialPort)
}

// listenerList is the result of listeners.
type listenerList struct {
	Listeners []service.Listener `json:"listeners"`
}

// PortParams name a port of a sandbox. They are exported because huma reads exported fields only.
type PortParams struct {
	SandboxParams
	Port uint16 `json:"port" minimum:"1" maximum:"65535" doc:"A TCP port of the sandbox."`
}

// waitParams are those of waitForListener.
type waitParams struct {
	PortParams
	service.PortWait
}

// endEvent says that the guest's server sends nothing more.
type endEvent struct {
	Type string `json:"type"`
}

// dialPort connects to a guest's server, and returns when both directions have ended. Canceling the request
// closes the connection.
func dialPort(t *task, sb *service.Sandbox, p PortParams) (any, error) {
	conn, err := sb.DialPort(t.ctx, p.Port)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer t.closeInput()()
	defer context.AfterFunc(t.ctx, func() {
		_ = conn.SetReadDeadline(time.Now())
		_ = conn.SetWriteDeadline(time.Now().Add(lastWrite)) // of what has arrived before
	})()
	if err := t.event(startedEvent{Type: "started"}); err != nil {
		return nil, err
	}
	if err := t.connect(conn); err != nil {
		return nil, sb.ConnectionError(t.ctx, err)
	}
	return nil, nil
}

// lastWrite is how long a guest may take to read what the client has sent before it canceled.
const lastWrite = time.Second

// connect copies in both directions until both have ended, or one fails.
func (t *task) connect(conn net.Conn) error {
	var out, in error
	var pumps sync.WaitGroup
	pumps.Go(func() {
		if out = t.copyFrom(conn); out != nil {
			t.stdin.Close(out)
		}
	})
	pumps.Go(func() {
		if in = t.copyTo(conn); in != nil {
			t.stdin.Close(in) // what still arrives is dropped
		}
	})
	pumps.Wait()
	return errors.Join(in, out)
}

// copyFrom sends what the guest sends, and then the event of its end.
func (t *task) copyFrom(conn net.Conn) error {
	if _, err := io.Copy(stdout{t}, conn); err != nil {
		return err
	}
	return t.event(endEvent{"end"})
}

// copyTo sends standard input to the guest, and then the end.
func (t *task) copyTo(conn net.Conn) error {
	if _, err := io.Copy(conn, t.stdin); err != nil {
		return err
	}
	return conn.(interface{ CloseWrite() error }).CloseWrite()
}
