package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/ociruntime"
	"gaol/runtime"
)

// Options are the options of [Run].
type Options struct {
	Files

	Socket string // path of the unix socket; empty: none
	Group  string // of users that may connect to it
	Listen string // address for TCP; empty: none

	// Insecure allows TCP without TLS on addresses that other machines reach.
	Insecure bool

	// Fleet configures the membership in a fleet. Unless it is InFleet, there is none, and Dir is that of the engine of batch runs.
	Fleet fleet.Options

	// Server configures the server itself. Run sets the options that come from files.
	Server server.Options

	// Check returns why this machine cannot run programs of the images, nil if it can. Images come
	// from the settings.
	Check func(ctx context.Context, images []string) error

	// IdleEvery is how often zygotes that no sandbox uses are stopped. Zero: every 5 minutes.
	IdleEvery time.Duration
}

// defaultIdleEvery is a compromise: a zygote takes 80 MB, and starting one some 100 ms.
const defaultIdleEvery = 5 * time.Minute

// process is a running server.
type process struct {
	Options
	log    *slog.Logger
	server *server.Server
	fleet  *fleet.Fleet                    // nil: no other machines
	cert   atomic.Pointer[tls.Certificate] // of TLS; reloads replace it

	term     context.Context // ends with the first SIGTERM or SIGINT
	stopTerm func()          // ends its handling
}

// Run serves until a signal or ctx ends it. It returns nil if the server was stopped and has closed
// everything. It handles SIGHUP, SIGINT and SIGTERM.
func Run(ctx context.Context, o Options) (err error) {
	p := &process{Options: o, log: o.Server.Log}
	p.term, p.stopTerm = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer p.stopTerm()
	hangups := make(chan os.Signal, 1) // drops another one while one is pending
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	now, err := p.read()
	if err != nil {
		return err
	}
	defer now.close()
	if err := p.Check(p.term, now.settings.Images); p.term.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	tracer, endTraces, err := startTraces(ctx)
	if err != nil {
		return err
	}
	defer endTraces(p.log)
	listeners, err := p.open(now)
	if err != nil {
		return err
	}
	p.Server.Settings, p.Server.Tokens, p.Server.Tracer = now.settings, now.tokens, tracer
	if p.Fleet.InFleet() {
		p.Fleet.Reload = func() {
			select {
			case hangups <- syscall.SIGHUP:
			default: // a reload is pending
			}
		}
		if err := p.joinFleet(listeners); err != nil {
			closeAll(listeners)
			return err
		}
		p.Server.Fleet, p.Server.Engine = p.fleet, p.fleet
	} else {
		p.Fleet.Log = p.log
		local, err := fleet.NewLocal(p.Fleet, findEngine)
		if err != nil {
			closeAll(listeners)
			return err
		}
		defer local.Close()
		p.Server.Engine = local
	}
	p.server = server.New(p.Server)
	p.use(now)
	if err := p.server.StartBatch(p.term); err != nil {
		p.log.Error("batch runs that were submitted before wait", "err", err)
	}
	return p.serve(listeners, hangups)
}

// findEngine returns the program of the engine.
func findEngine() (string, error) { return ociruntime.Beside("nats-server") }

// joinFleet makes this machine a node of a fleet. If it has made the fleet, it prints how others join.
func (p *process) joinFleet(listeners []listener) (err error) {
	o := p.Fleet
	o.Log, o.Tracer, o.Version, o.Processors, o.Memory = p.log, p.Server.Tracer, p.Server.Version, goruntime.GOMAXPROCS(0), p.Server.Settings.Server.Memory
	for _, l := range listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			o.Port = strconv.Itoa(a.Port)
		}
	}
	if o.Program, err = findEngine(); err != nil && o.Found {
		return err
	}
	if p.fleet, err = fleet.Start(p.term, o); err != nil {
		return err
	}
	p.log, p.Server.Log = p.fleet.Log, p.fleet.Log
	p.log.Info("node of a fleet", "address", p.fleet.Address)
	if token := p.fleet.FirstToken(); token != "" {
		p.log.Info("other machines join for a day with: gaol serve --join " + p.fleet.Address + " --join-token " + token)
	}
	return nil
}

// serve serves the listeners until a signal ends it, or one of them fails.
func (p *process) serve(listeners []listener, hangups <-chan os.Signal) error {
	failed, cancel := context.WithCancelCause(p.term)
	defer cancel(nil)
	var serving, helping sync.WaitGroup
	for _, l := range listeners {
		p.log.Info("serve", "address", l.Addr().String(), "tls", l.tls != nil)
		serving.Go(func() {
			if err := p.server.Serve(l.Listener, l.tls); err != nil {
				cancel(err)
			}
		})
	}
	if p.fleet != nil {
		serving.Go(func() {
			if err := p.server.ServeNodes(); err != nil {
				cancel(err)
			}
		})
	}
	done, stopHelping := context.WithCancel(context.Background())
	go p.watch(done) // not waited for: it blocks while systemd does not read
	helping.Go(func() { closeIdle(done, cmp.Or(p.IdleEvery, defaultIdleEvery), p.log) })
	p.notify(daemon.SdNotifyReady)
	p.reloads(failed, hangups)
	stopped := p.term.Err() != nil
	now, stopNow := signal.NotifyContext(context.WithoutCancel(p.term), syscall.SIGINT, syscall.SIGTERM)
	defer stopNow()
	p.stopTerm()
	context.AfterFunc(now, stopNow) // a third signal ends the process
	err := p.drain(now)
	serving.Wait()
	stopHelping()
	helping.Wait()
	if !stopped {
		err = errors.Join(context.Cause(failed), err)
	}
	return err
}

// drain stops the server, and its runs when now ends. Until it returns, systemd waits.
func (p *process) drain(now context.Context) error {
	limit := time.Duration(p.server.Settings().DrainMs) * time.Millisecond
	p.log.Info("stop", "drain", limit)
	p.notify(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d", daemon.SdNotifyStopping, (limit + closeTime).Microseconds())) // from now on
	err := p.server.Drain(now)
	if p.fleet != nil {
		if failed := p.fleet.Leave(context.WithoutCancel(now)); failed != nil {
			p.log.Warn("the fleet does not know that this node has left", "err", failed)
		}
	}
	p.log.Info("stopped", "err", err)
	return err
}

// closeTime is how long closing all sandboxes may take.
const closeTime = 30 * time.Second

// closeIdle stops zygotes that no sandbox uses, at intervals until ctx ends.
func closeIdle(ctx context.Context, every time.Duration, log *slog.Logger) {
	repeat(ctx, every, func() {
		if err := runtime.CloseIdle(); err != nil {
			log.Error("stop idle zygotes", "err", err)
		}
	})
}

// repeat calls do at intervals until ctx ends.
func repeat(ctx context.Context, every time.Duration, do func()) {
	ticks := time.Tick(every)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			do()
		}
	}
}

// notify sends a state to systemd, if it has started the server.
func (p *process) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("notify systemd", "err", err)
	}
}

// watch keeps systemd's watchdog from ending the server as long as no part of it is blocked.
func (p *process) watch(ctx context.Context) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		p.log.Warn("watchdog", "err", err)
	}
	if limit <= 0 {
		return
	}
	repeat(ctx, limit/2, func() {
		p.server.Alive()
		p.notify(daemon.SdNotifyWatchdog)
	})
}

// Files are the files that a server reads when it starts, and again with each reload. Empty paths
// mean that there is none.
type Files struct {
	Config    string // the settings
	Tokens    string // the tokens of TCP
	Cert, Key string // of TLS

	Overrides settings.Overrides // of Config
}

// current is the content of the files.
type current struct {
	settings *settings.Settings
	tokens   *tenant.Tokens
	cert     *tls.Certificate
	audit    *os.File
}

// read reads all files, and opens the audit log.
func (p *process) read() (c *current, err error) {
	f, c := p.Files, &current{}
	if p.Fleet.InFleet() {
		f.Config, f.Tokens = fleet.Pushed(p.Fleet.Dir, f.Config, f.Tokens)
	}
	if c.settings, err = settings.Read(f.Config, f.Overrides); err != nil {
		return nil, err
	}
	if f.Tokens != "" {
		if c.tokens, err = tenant.ReadTokens(f.Tokens); err != nil {
			return nil, err
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		c.cert = &pair
	}
	if path := c.settings.AuditLog; path != "" {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("config: auditLog %q: want an absolute path", path)
		}
		c.audit, err = audit.Open(path)
	}
	return c, err
}

// close closes the audit log if no server has it.
func (c *current) close() {
	if c.audit != nil {
		_ = c.audit.Close() // nothing was written
	}
}

// use gives the server the content of the files. The server then owns the audit log.
func (p *process) use(c *current) {
	p.cert.Store(c.cert)
	p.server.Reload(c.settings, c.tokens)
	err := p.server.SetAudit(c.audit)
	c.audit = nil
	if err != nil {
		p.log.Error("close the previous audit log", "err", err)
	}
}

// reloads reads the files again with each SIGHUP, until ctx ends.
func (p *process) reloads(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		p.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
		if next, err := p.read(); err != nil {
			p.log.Error("reload: the old settings, tokens and certificates stay", "err", err)
		} else {
			p.use(next)
			p.log.Info("reload")
		}
		p.notify(daemon.SdNotifyReady)
	}
}
