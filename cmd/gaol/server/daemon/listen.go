package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/coreos/go-systemd/v22/activation"
)

// listener is what a server serves, with TLS if tls is not nil.
type listener struct {
	net.Listener
	tls *tls.Config
}

// open opens the listeners. If systemd has passed sockets, they replace Socket.
func (p *process) open(c *current) (list []listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				_ = l.Close()
			}
		}
	}()
	if list, err = activated(); err != nil {
		return list, err
	}
	if len(list) == 0 && p.Socket != "" {
		l, err := listenUnix(p.Socket, p.Group)
		if err != nil {
			return list, err
		}
		list = append(list, listener{l, nil})
	}
	if p.Listen != "" {
		var config net.ListenConfig
		l, err := config.Listen(context.Background(), "tcp", p.Listen)
		if err != nil {
			return list, err
		}
		list = append(list, listener{l, nil})
	}
	for i := range list {
		if list[i].tls, err = p.secure(list[i].Listener, c); err != nil {
			return list, err
		}
	}
	return list, nil
}

// activated returns the sockets that systemd has passed.
func activated() (list []listener, err error) {
	for _, f := range activation.Files(true) {
		l, err := net.FileListener(f)
		_ = f.Close() // FileListener has duplicated it
		if err != nil {
			return list, fmt.Errorf("a socket of systemd is none that accepts connections: %w", err)
		}
		list = append(list, listener{l, nil})
	}
	return list, nil
}

// secure returns the TLS configuration of a listener, nil for one without TLS. It returns an error if
// others could read the tokens, or if there are none.
func (p *process) secure(l net.Listener, c *current) (*tls.Config, error) {
	switch address := l.Addr().(type) {
	case *net.UnixAddr:
		if address.Net == "unix" {
			return nil, nil
		}
	case *net.TCPAddr:
		if c.tokens == nil {
			return nil, fmt.Errorf("%s: TCP needs --tokens", address)
		}
		if c.cert != nil {
			return p.cert.config(), nil
		}
		if !address.IP.IsLoopback() && !p.Insecure {
			return nil, fmt.Errorf("%s: others could read the tokens: give --tls-cert and --tls-key, or --insecure", address)
		}
		return nil, nil
	}
	return nil, fmt.Errorf("%s: want a stream socket, unix or TCP, not %s", l.Addr(), l.Addr().Network())
}
