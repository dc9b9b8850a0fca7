package npm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"gaol/rootfs/download"
)

const (
	tries        = 3
	maxFetchTime = 15 * time.Minute // for one try, against a server that is slow but never stalls
)

var errDowngrade = errors.New("redirect from https to http")

// Client fetches package descriptions and tarballs from a registry. It does not trust the
// registry, and callers must check the responses.
type Client struct {
	o    Options
	http *http.Client
	base *url.URL
}

// Options configure a Client.
type Options struct {
	Pins  Pins          // hashes that are known without the registry
	Pause time.Duration // before the first retry; doubles with each further one
	Stall time.Duration // without a byte, after which a try has failed
}

// NewClient returns a Client for the registry and the proxies that are configured.
func NewClient(o Options) (*Client, error) {
	base, err := configuredRegistry()
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: download.NewTransport(o.Stall), CheckRedirect: checkRedirect}
	return &Client{o, client, base}, nil
}

// checkRedirect rejects redirects from https to http, because no hash protects descriptions.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 10:
		return errors.New("10 redirects")
	case req.URL.Scheme != "https" && via[0].URL.Scheme == "https":
		return errDowngrade
	}
	return nil
}

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// get passes the body at path, below the registry's address, to consume. If the transfer
// fails, it retries and calls consume again with a new body. The size is -1 if unknown.
func (c *Client) get(ctx context.Context, path, accept string, consume func(io.Reader, int64) error) error {
	address := c.base.JoinPath(path)
	for try, pause := 1, c.o.Pause; ; try, pause = try+1, 2*pause {
		transient, err := c.try(ctx, address, accept, consume)
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			transient, err = false, cause
		}
		if !transient || try == tries {
			return fmt.Errorf("%s: %w", address.Redacted(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// try is get without retries. It reports whether a retry may help.
func (c *Client) try(ctx context.Context, address *url.URL, accept string, consume func(io.Reader, int64) error) (transient bool, err error) {
	ctx, stop := context.WithTimeout(ctx, maxFetchTime)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return false, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := c.http.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // which names the address again
	}
	if err != nil {
		return !errors.Is(err, errDowngrade), err
	}
	defer resp.Body.Close()
	if status := resp.StatusCode; status != http.StatusOK {
		transient = status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
		return transient, errors.New(resp.Status)
	}
	in := &body{Reader: resp.Body}
	err = consume(in, resp.ContentLength)
	return in.failed, err
}

// body is a response body. It remembers whether the transfer failed, which a caller that
// copies it cannot distinguish from an error of the destination.
type body struct {
	io.Reader
	failed bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.failed = true
	}
	return n, err
}
