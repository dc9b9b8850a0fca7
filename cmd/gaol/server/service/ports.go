package service

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"gaol/cmd/gaol/server/quota"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// ListenerList is a list of TCP addresses.
type ListenerList struct {
	Listeners []resultjson.Listener `json:"listeners"`
}

// ListListeners lists the TCP addresses on which guests listen.
func (sb *Sandbox) ListListeners(ctx context.Context, _ *Call, _ *requestjson.InSandbox) (ListenerList, error) {
	addresses, err := sb.runtime.Listeners(ctx)
	if err != nil {
		return ListenerList{}, PortError(err, "")
	}
	list := []resultjson.Listener{}
	for _, a := range addresses {
		list = append(list, resultjson.Listener{Address: a.Addr().String(), Port: a.Port()})
	}
	return ListenerList{list}, nil
}

// WaitForPort waits until a guest listens on a port of localhost, or the time is over.
func (sb *Sandbox) WaitForPort(ctx context.Context, _ *Call, in *requestjson.PortWaitIn) (*resultjson.PortState, error) {
	held, err := sb.Connect()
	if err != nil {
		return nil, err
	}
	defer held.Release()
	timeout, err := sb.timeout(in.Timeout)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = sb.runtime.WaitForListener(ctx, in.Port)
	if errors.Is(err, context.DeadlineExceeded) {
		return &resultjson.PortState{}, nil
	}
	if err != nil {
		return nil, PortError(err, "")
	}
	return &resultjson.PortState{Listening: true}, nil
}

// Connect counts a connection to a port of the sandbox until the reservation is released.
func (sb *Sandbox) Connect() (*quota.Reservation, error) {
	return sb.account.Reserve(quota.Limits{Connections: 1})
}

// lastWrite is how long a guest may take to read the data that the client sent before it canceled.
const lastWrite = time.Second

// Dial connects to a guest's server on a port of localhost until both directions have ended. The end of ctx closes the
// connection.
func (sb *Sandbox) Dial(ctx context.Context, c *Call, in *requestjson.InPort) (None, error) {
	if c.To == nil || c.Stdin == nil {
		return None{}, Refuse(Invalid, "dial: want stdin and events")
	}
	held, err := sb.Connect()
	if err != nil {
		return None{}, err
	}
	defer held.Release()
	conn, err := sb.runtime.Dial(ctx, "tcp", in.Port)
	if err != nil {
		return None{}, sb.connectionError(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = conn.SetReadDeadline(time.Now())
		_ = conn.SetWriteDeadline(time.Now().Add(lastWrite)) // of what has arrived before
		c.Stdin.(closer).Close(context.Cause(ctx))
	})()
	if err := c.To(Event{Name: EventStarted, Data: None{}}); err != nil {
		return None{}, err
	}
	if err := relay(ctx, c, conn); err != nil {
		return None{}, sb.connectionError(ctx, err)
	}
	return None{}, nil
}

// relay copies in both directions until both have ended, or one fails.
func relay(ctx context.Context, c *Call, conn net.Conn) error {
	stdin := c.Stdin.(closer)
	var out, in error
	var pumps sync.WaitGroup
	pumps.Go(func() {
		if _, out = io.Copy(c.Download(ctx), conn); out == nil {
			out = c.To(Event{Name: EventEnd, Data: None{}})
		}
		if out != nil {
			stdin.Close(out)
		}
	})
	pumps.Go(func() {
		if _, in = io.Copy(conn, c.Stdin); in == nil {
			in = conn.(interface{ CloseWrite() error }).CloseWrite()
		}
		if in != nil {
			stdin.Close(in) // what still arrives is dropped
		}
	})
	pumps.Wait()
	return errors.Join(in, out)
}

// closer is the standard input of a session, which can be closed with an error.
type closer interface{ Close(error) }

// connectionError converts an error of a connection to a guest's port.
func (sb *Sandbox) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if sb.service.find(sb.tenant(), sb.ID) == nil {
		err = runtime.ErrClosed
	}
	return PortError(err, "the guest has reset the connection")
}

// PortError converts an error of a port of a sandbox. Errors without a code of their own get a text, or stay if it is empty.
func PortError(err error, otherwise string) error {
	switch {
	case is[*http.MaxBytesError](err):
		return Refuse(TooLarge, "the body is larger than your quota uploadBytes")
	case errors.Is(err, fs.ErrPermission):
		return Refuse(Forbidden, "the sandbox's permissions do not let it listen on this port")
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refuse(NotListening, "nothing listens on this port of the sandbox's localhost")
	case errors.Is(err, runtime.ErrClosed):
		return Refuse(Closed, "the sandbox has been closed")
	case otherwise == "":
		return err
	}
	return Refuse(BadGateway, "%s", otherwise)
}
