package engine

import (
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"
)

// External is an engine that gaol does not run: NATS servers with JetStream, and an account for this fleet only.
type External struct {
	URLs string // nats:// or tls://, separated by commas, with credentials; empty: none
	CA   string // file with the authority of their certificates; empty: the authorities of the machine
}

// Connect is like the function of that name. Three or more servers keep each bucket and queue three times.
func (e *External) Connect(name string, log *slog.Logger) (*Client, error) {
	var options []nats.Option
	if e.CA != "" {
		options = append(options, nats.RootCAs(e.CA)) // requires TLS
	}
	c := &Client{copies: 1}
	if strings.Count(e.URLs, ",") >= 2 {
		c.copies = 3
	}
	c.generation.Store(new(string))
	return c.connect(e.URLs, name, log, options...)
}
