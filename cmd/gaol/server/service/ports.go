package service

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// ListListeners lists the TCP addresses on which guests listen.
func (sb *Sandbox) ListListeners(ctx context.Context) ([]resultjson.Listener, error) {
	addresses, err := sb.runtime.Listeners(ctx)
	if err != nil {
		return nil, portError(err)
	}
	list := []resultjson.Listener{}
	for _, a := range addresses {
		list = append(list, resultjson.Listener{Address: a.Addr().String(), Port: a.Port()})
	}
	return list, nil
}

// WaitForPort waits until a guest listens on a port of localhost, or the time is over.
func (sb *Sandbox) WaitForPort(ctx context.Context, in *requestjson.PortWaitIn) (*resultjson.PortState, error) {
	release, err := sb.Connect()
	if err != nil {
		return nil, err
	}
	defer release()
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
		return nil, portError(err)
	}
	return &resultjson.PortState{Listening: true}, nil
}

// Connect counts a connection to a port of the sandbox until release is called.
func (sb *Sandbox) Connect() (release func(), err error) { return sb.account.Connect() }

// DialPort connects to a guest's server on a port of localhost. The connection counts towards the
// tenant's quota until the caller closes it.
func (sb *Sandbox) DialPort(ctx context.Context, port uint16) (net.Conn, error) {
	release, err := sb.Connect()
	if err != nil {
		return nil, err
	}
	c, err := sb.runtime.Dial(ctx, "tcp", port)
	if err != nil {
		release()
		return nil, sb.ConnectionError(ctx, err)
	}
	return &countedConn{c.(tcpConn), release}, nil
}

// tcpConn is a connection to a guest's server.
type tcpConn interface {
	net.Conn
	CloseWrite() error
}

// countedConn is a connection that counts towards a quota.
type countedConn struct {
	tcpConn
	release func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.release()
	return c.tcpConn.Close()
}

// ConnectionError converts an error of a connection to a guest's port.
func (sb *Sandbox) ConnectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*Error](GatewayError(err)); ok && e.Code != BadGateway {
		return e
	}
	if sb.isClosed() {
		return Refuse(Closed, "the sandbox has been closed")
	}
	return Refuse(BadGateway, "the guest has reset the connection")
}

// portError converts an error of the sandbox's ports.
func portError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return errListen
	}
	return err
}

var errListen = Refuse(Forbidden, "the sandbox's permissions do not let it listen on this port")

// GatewayError converts an error of a request to a guest's port.
func GatewayError(err error) error {
	switch {
	case is[*http.MaxBytesError](err):
		return Refuse(TooLarge, "the body is larger than your quota uploadBytes")
	case errors.Is(err, fs.ErrPermission):
		return errListen
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refuse(NotListening, "nothing listens on this port of the sandbox's localhost")
	case errors.Is(err, runtime.ErrClosed):
		return Refuse(Closed, "the sandbox has been closed")
	}
	return Refuse(BadGateway, "the guest's server did not reply with HTTP")
}
