package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/daemon"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
)

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
func (f *Files) read() (c *current, err error) {
	c = &current{}
	if c.settings, err = settings.ReadWith(f.Config, f.Overrides); err != nil {
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
