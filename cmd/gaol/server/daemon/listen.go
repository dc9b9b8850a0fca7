package daemon

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server"
	"gaol/internal/kernfile"
)

// listener is a server's listener, with TLS if tls is not nil.
type listener struct {
	net.Listener
	tls *tls.Config
}

func closeAll(list []listener) {
	for _, l := range list {
		_ = l.Close()
	}
}

// open opens the listeners. If systemd has passed sockets, they replace Socket.
func (p *process) open(c *current) (list []listener, err error) {
	defer func() {
		if err != nil {
			closeAll(list)
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
		config.SetMultipathTCP(false) // it lacks some options of TCP
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

// socketBuffer bounds the kernel's send and receive buffers of a connection, in bytes. By default they can grow to several
// MiB, for a client that does not read, or one whose data a guest does not read.
const socketBuffer = 256 << 10

// boundBuffers bounds the buffers of the connections that a TCP listener accepts. What has been sent and not acknowledged
// does not count, so that responses over long distances are not slowed down.
func boundBuffers(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	return kernfile.Control(tcp, func(fd int) error {
		return os.NewSyscallError("setsockopt", errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, socketBuffer)))
	})
}

// activated returns the sockets that systemd has passed.
func activated() (list []listener, err error) {
	for _, f := range activation.Files(true) {
		l, err := net.FileListener(f)
		_ = f.Close() // FileListener has duplicated it
		if err != nil {
			return list, fmt.Errorf("a socket of systemd does not accept connections: %w", err)
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
			get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.cert.Load(), nil }
			return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get}, nil
		}
		if !address.IP.IsLoopback() && !p.Insecure {
			return nil, fmt.Errorf("%s: others could read the tokens: give --tls-cert and --tls-key, or --insecure", address)
		}
		return nil, nil
	}
	return nil, fmt.Errorf("%s: want a stream socket, unix or TCP, not %s", l.Addr(), l.Addr().Network())
}

// RunInherited serves the connection that this process has inherited as a descriptor, until it ends or SIGTERM arrives.
// SIGINT and SIGHUP have no effect: a terminal also sends them to the program at the other end, which
// decides how to react.
func RunInherited(ctx context.Context, fd int, o server.Options) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can serve an inherited socket")
	}
	c, err := inherit(fd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT, syscall.SIGHUP) // not signal.Ignore, which child processes would inherit
	defer signal.Stop(ignored)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one ends the process
	idle, stopIdle := context.WithCancel(ctx)
	defer stopIdle()
	go closeIdle(idle, defaultIdleEvery, o.Log)
	return server.ServeSingle(ctx, c, o)
}

// inherit returns the connection of a descriptor, which it closes.
func inherit(fd int) (*net.UnixConn, error) {
	if fd < 3 {
		return nil, fmt.Errorf("descriptor %d: want one above standard input, output and error", fd)
	}
	f := os.NewFile(uintptr(fd), "inherited socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, errors.Unwrap(err)) // without the names of the file
	}
	if u, ok := c.(*net.UnixConn); ok && c.RemoteAddr() != nil && c.LocalAddr().Network() == "unix" {
		return u, nil
	}
	_ = c.Close()
	return nil, fmt.Errorf("descriptor %d: want a connected unix stream socket", fd)
}

// listenUnix listens on a socket that root and a group may connect to. A socket of a server that has
// been killed is replaced.
func listenUnix(path, group string) (net.Listener, error) {
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := errors.Join(checkSocketDir(filepath.Dir(path)), removeStaleSocket(path)); err != nil {
		return nil, err
	}
	return listenAsGroup(path, gid)
}

// groupID returns the id of a group: root's for the default group if that does not exist.
func groupID(group string) (int, error) {
	g, err := user.LookupGroup(group)
	if errors.As(err, new(user.UnknownGroupError)) && group == "gaol" {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// checkSocketDir rejects a folder in which other users could replace the socket with their own.
func checkSocketDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner != 0 && owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s: other users could replace the socket: only root may be able to write to its folder", dir)
	}
	return nil
}

// removeStaleSocket removes a socket of this user on which no server listens.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return fmt.Errorf("%s exists, and is not a socket of a former server", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("%s: another server listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// listenAsGroup listens on a socket with mode 0660 that belongs to a group from the start. Changing the
// path afterwards could change another file, which a user has put there.
func listenAsGroup(path string, gid int) (net.Listener, error) {
	goruntime.LockOSThread() // the fsgid is per thread
	defer goruntime.UnlockOSThread()
	uid, old, err := kernfile.SetFileIDs(os.Geteuid(), gid)
	defer func() { _, _, _ = kernfile.SetFileIDs(uid, old) }()
	if err != nil {
		return nil, fmt.Errorf("%s: may not give the socket to group %d", path, gid)
	}
	defer syscall.Umask(syscall.Umask(0o117))
	return net.Listen("unix", path)
}

//go:embed gaol.service
var serviceUnit string

//go:embed gaol.socket
var socketUnit string

// ServiceUnit returns the unit of the serviceUnit that executes a command line.
func ServiceUnit(command ...string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quote(word)
	}
	return strings.Replace(serviceUnit, "@EXEC@", strings.Join(words, " "), 1)
}

// SocketUnit returns the unit of the unix socketUnit, which a group may connect to.
func SocketUnit(path, group string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	return strings.NewReplacer("@SOCKET@", path, "@GROUP@", group).Replace(socketUnit)
}

// quote returns a word as systemd reads it in a command line: see systemd.service(5).
func quote(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `$$`, `%`, `%%`, "\n", `\n`).Replace(word)
	if word == "" || strings.ContainsAny(word, " \t'\";") {
		return `"` + word + `"`
	}
	return word
}
