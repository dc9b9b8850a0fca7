package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

const serveLong = `Serve an HTTP API for programs in any language, on a unix socket.

Users in the socket's group can run code in sandboxes. That does not make them root: see
docs/server.md. --config names a file of JSON with quotas, the permissions that sandboxes
may have at most, and more.

--listen also serves TCP. Callers then need a token: --tokens names a file that has, on each
line, a name and the SHA-256 of its token. Unless the address is a loopback one, TCP needs
--tls-cert and --tls-key, or --insecure.

SIGTERM and SIGINT stop the server: it accepts nothing new, and ends what still runs after
the time that the file says. SIGHUP reads the files again.`

const serveExample = `  gaol serve
  gaol serve --group developers --config /etc/gaol/server.json
  gaol serve --listen 127.0.0.1:8640 --tokens /etc/gaol/tokens
  curl --unix-socket /run/gaol/gaol.sock http://gaol/v1/run --json '{"code": "console.log(1)"}'`

// serveFlags are the flags of gaol serve.
type serveFlags struct {
	socket, group, listen, tokens, cert, key, config, store string
	insecure                                                bool
	tools                                                   []string
}

// defaultSocket is where clients look for a server.
const defaultSocket = "/run/gaol/gaol.sock"

func (a *app) serveCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{Use: "serve", Short: "Serve an HTTP API for sandboxes", Long: serveLong, Example: serveExample, Args: usageArgs(noArgs)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return report.UsageError(cmd.CommandPath(), err)
		}
		return a.serve(cmd.Context(), f)
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.socket, "socket", defaultSocket, "`PATH` of the unix socket; empty for none")
	set.StringVar(&f.group, "group", "gaol", "`GROUP` of users that may connect to it; without such a group only root may")
	set.StringVar(&f.listen, "listen", "", "also serve TCP on `ADDR`, such as 127.0.0.1:8640")
	set.StringVar(&f.tokens, "tokens", "", "`FILE` with the tokens that TCP needs")
	set.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate for TCP")
	set.StringVar(&f.key, "tls-key", "", "`FILE` with its key")
	set.BoolVar(&f.insecure, "insecure", false, "serve TCP without TLS although others could read the tokens")
	set.StringVar(&f.config, "config", "", "`FILE` of JSON with the server's settings")
	addTools(cmd, &f.tools)
	flags.AddStore(cmd, &f.store)
	return cmd
}

// check rejects flags that contradict each other.
func (f *serveFlags) check() error {
	if _, err := sandboxTools(f.tools); err != nil {
		return err
	}
	switch {
	case f.socket == "" && f.listen == "":
		return errors.New("nothing to listen on: give --socket or --listen")
	case f.listen == "" && (f.tokens != "" || f.cert != "" || f.key != "" || f.insecure):
		return errors.New("--tokens, --tls-cert, --tls-key and --insecure need --listen")
	case f.listen == "":
		return nil
	case f.tokens == "":
		return errors.New("--listen needs --tokens")
	case (f.cert == "") != (f.key == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	}
	address, err := netip.ParseAddrPort(f.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: want an address and a port", f.listen)
	}
	if f.cert == "" && !address.Addr().IsLoopback() && !f.insecure {
		return fmt.Errorf("--listen %s: others could read the tokens: give --tls-cert and --tls-key, or --insecure", f.listen)
	}
	return nil
}

// serve serves until ctx ends.
func (a *app) serve(ctx context.Context, f *serveFlags) error {
	o, tokens, err := f.read()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	s := server.New(server.Options{Settings: o, Tokens: tokens, Store: f.store, Version: versionText(), Log: log, SandboxTools: len(f.tools) > 0})
	listeners, err := f.open()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var serving sync.WaitGroup
	for _, l := range listeners {
		log.Info("serve", "address", l.Addr().String())
		serving.Go(func() { cancel(s.Serve(l.Listener, l.tls)) })
	}
	stop := f.reload(s, log)
	defer stop()
	<-ctx.Done()
	log.Info("stop")
	err = s.Close()
	serving.Wait()
	if !errors.As(context.Cause(ctx), new(signalError)) {
		return errors.Join(context.Cause(ctx), err)
	}
	if err == nil {
		err = errStopped
	}
	return err
}

// errStopped ends a server that a signal has stopped. That is a success.
var errStopped = errors.New("stopped")

// read reads the files.
func (f *serveFlags) read() (o *settings.Settings, tokens *tenant.Tokens, err error) {
	if o, err = settings.Read(f.config); err != nil {
		return nil, nil, err
	}
	if f.tokens != "" {
		tokens, err = tenant.ReadTokens(f.tokens)
	}
	return o, tokens, err
}

// reload reads the files again with each SIGHUP, until stop is called.
func (f *serveFlags) reload(s *server.Server, log *slog.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-hangups:
			}
			o, tokens, err := f.read()
			if err != nil {
				log.Error("reload: the old settings stay", "err", err)
				continue
			}
			s.Reload(o, tokens)
			log.Info("reload")
		}
	}()
	return func() { signal.Stop(hangups); close(done) }
}

// listener is what a server serves, with TLS if tls is not nil.
type listener struct {
	net.Listener
	tls *tls.Config
}

// open opens the listeners.
func (f *serveFlags) open() (list []listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				_ = l.Close()
			}
		}
	}()
	if f.socket != "" {
		l, err := listenUnix(f.socket, f.group)
		if err != nil {
			return list, err
		}
		list = append(list, listener{l, nil})
	}
	if f.listen == "" {
		return list, nil
	}
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", f.listen)
	if err != nil {
		return list, err
	}
	list = append(list, listener{l, nil})
	if f.cert == "" {
		return list, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	list[len(list)-1].tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return list, err
}

// listenUnix listens on a socket that root and a group may connect to. A socket of a server that has
// been killed is replaced.
func listenUnix(path, group string) (net.Listener, error) {
	gid := 0
	g, err := user.LookupGroup(group)
	if err == nil {
		gid, err = strconv.Atoi(g.Gid)
	}
	if errors.As(err, new(user.UnknownGroupError)) && group == "gaol" {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("%s: another server listens there", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	old := syscall.Umask(0o777) // no client can connect before the group is set
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chown(path, 0, gid), os.Chmod(path, 0o660)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
