package engine

import (
	"context"
	"errors"
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

// isMissing reports whether a bucket, queue or consumer with an error of its look-up has to be created. What exists in an external
// engine is not updated: that takes long, and a stream that is kept more often than before can lose its leader for ever.
func (c *Client) isMissing(err, notFound error) bool {
	return c.copies == 0 || errors.Is(err, notFound)
}

// readFromLeader makes the leader of a stream answer reads. Another server with a copy may not have the last records yet.
func (c *Client) readFromLeader(ctx context.Context, stream string) error {
	s, err := c.js.Stream(ctx, stream)
	if err != nil || !s.CachedInfo().Config.AllowDirect {
		return err
	}
	config := s.CachedInfo().Config
	config.AllowDirect = false
	_, err = c.js.UpdateStream(ctx, config)
	return err
}
