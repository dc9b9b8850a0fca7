package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
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
		config.SetMultipathTCP(false) // has not all options of TCP
		l, err := config.Listen(context.Background(), "tcp", p.Listen)
		if err != nil {
			return list, err
		}
		list = append(list, listener{l, nil})
	}
	for i := range list {
		if err := boundBuffers(list[i].Listener); err != nil {
			return list, err
		}
		if list[i].tls, err = p.secure(list[i].Listener, c); err != nil {
			return list, err
		}
	}
	return list, nil
}

// socketBuffer bounds the bytes that the kernel holds for a client that has stopped reading or whose data this process
// does not read yet, such as what it sends to a guest's port. Otherwise that can become some MiB for each connection.
const socketBuffer = 256 << 10

// boundBuffers bounds the buffers of the connections that a TCP listener accepts. What has been sent and not acknowledged
// does not count, so that responses over long distances are not slowed down.
func boundBuffers(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, socketBuffer))
	})
	return errors.Join(err, os.NewSyscallError("setsockopt", failed))
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
