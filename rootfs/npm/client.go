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
// registry: callers must check what they get.
type Client struct {
	pins  Pins
	http  *http.Client
	base  *url.URL
	pause time.Duration
}

// Options configure a Client.
type Options struct {
	Registry string        // address; empty: the configured registry
	Pins     Pins          // hashes that are known without the registry
	Pause    time.Duration // before the first retry; doubles with each further one
	Stall    time.Duration // without a byte, after which a try has failed
}

// NewClient returns a Client for the registry and the proxies that are configured.
func NewClient(o Options) (*Client, error) {
	find := configuredRegistry
	if o.Registry != "" {
		find = func() (*url.URL, error) { return parseRegistry(o.Registry) }
	}
	base, err := find()
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: download.NewTransport(o.Stall), CheckRedirect: checkRedirect}
	return &Client{o.Pins, client, base, o.Pause}, nil
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

// transientError is a failure that a retry may cure.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// get passes the body at path, below the registry's address, to consume. If the transfer
// fails, it retries and calls consume again with a new body. The size is -1 if unknown.
func (c *Client) get(ctx context.Context, path, accept string, consume func(io.Reader, int64) error) error {
	address := c.base.JoinPath(path)
	for try, pause := 1, c.pause; ; try, pause = try+1, 2*pause {
		err := c.try(ctx, address, accept, consume)
		if _, transient := errors.AsType[*transientError](err); !transient || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", address.Redacted(), context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (c *Client) try(ctx context.Context, address *url.URL, accept string, consume func(io.Reader, int64) error) error {
	limited, stop := context.WithTimeout(ctx, maxFetchTime)
	defer stop()
	// classify marks a failed transfer as transient, unless ctx has ended.
	classify := func(err error) error {
		if cause := context.Cause(limited); cause != nil {
			err = cause
		}
		err = fmt.Errorf("%s: %w", address.Redacted(), err)
		if ctx.Err() != nil || errors.Is(err, errDowngrade) {
			return err
		}
		return &transientError{err}
	}
	req, err := http.NewRequestWithContext(limited, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := c.http.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // which names the address again
	}
	if err != nil {
		return classify(err)
	}
	defer resp.Body.Close()
	if err := checkStatus(resp, address); err != nil {
		return err
	}
	return consume(&body{resp.Body, classify}, resp.ContentLength)
}

// checkStatus returns an error for any status but 200.
func checkStatus(resp *http.Response, address *url.URL) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	err := fmt.Errorf("%s: %s", address.Redacted(), resp.Status)
	switch {
	case resp.StatusCode >= 500,
		resp.StatusCode == http.StatusTooManyRequests,
		resp.StatusCode == http.StatusRequestTimeout:
		return &transientError{err}
	}
	return err
}

// body classifies the errors of a response body, so that a caller that copies it can distinguish
// them from errors of the destination.
type body struct {
	io.Reader
	classify func(error) error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = b.classify(err)
	}
	return n, err
}
