package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	tries        = 3
	maxFetchTime = 15 * time.Minute // of one try, for a server that never quite stalls
)

var (
	errStalled   = errors.New("the server has gone quiet")
	errDowngrade = errors.New("redirect from https to http")
)

// fetcher gets things from the registry. What it gets is not to be believed:
// its callers check it.
type fetcher struct {
	client *http.Client
	base   *url.URL
	pause  time.Duration
	stall  time.Duration
}

// fetcher returns one for the configured registry and proxies.
func (in *inputs) fetcher() (*fetcher, error) {
	find := configuredRegistry
	if in.registry != "" {
		find = func() (*url.URL, error) { return parseRegistry(in.registry) }
	}
	base, err := find()
	if err != nil {
		return nil, err
	}
	// A transport of its own, whose connections end with the build; like the
	// default one it goes through the proxies of the environment.
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: in.stall,
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	return &fetcher{client: client, base: base, pause: in.pause, stall: in.stall}, nil
}

// checkRedirect keeps descriptions, which no hash protects, on https.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 10:
		return errors.New("10 redirects")
	case req.URL.Scheme != "https" && via[0].URL.Scheme == "https":
		return errDowngrade
	}
	return nil
}

// Close ends the connections.
func (f *fetcher) Close() { f.client.CloseIdleConnections() }

// request is what to get: a path below the registry's address.
type request struct{ path, accept string }

// transientError is a failure that may not happen again.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// get hands the body at r to consume, which must be ready to be called again,
// from the start, when the connection fails before the body's end. The size is
// -1 when the server does not tell.
func (f *fetcher) get(ctx context.Context, r request, consume func(io.Reader, int64) error) error {
	address := f.base.JoinPath(r.path)
	for try, pause := 1, f.pause; ; try, pause = try+1, 2*pause {
		err := f.try(ctx, address, r.accept, consume)
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

func (f *fetcher) try(ctx context.Context, address *url.URL, accept string, consume func(io.Reader, int64) error) error {
	limited, stop := context.WithTimeout(ctx, maxFetchTime)
	defer stop()
	watched, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	watchdog := time.AfterFunc(f.stall, func() { cancel(errStalled) })
	defer watchdog.Stop()

	// judge tells a failed transfer, which may be tried again, from the end of ctx.
	judge := func(err error) error {
		if cause := context.Cause(watched); cause != nil {
			err = fmt.Errorf("%s: %w", address.Redacted(), cause)
		}
		if ctx.Err() != nil || errors.Is(err, errDowngrade) {
			return err
		}
		return &transientError{err}
	}
	req, err := http.NewRequestWithContext(watched, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return judge(err)
	}
	defer resp.Body.Close()
	if err := checkStatus(resp, address); err != nil {
		return err
	}
	return consume(&body{resp.Body, address, judge, func() { watchdog.Reset(f.stall) }}, resp.ContentLength)
}

// checkStatus says whether the answer is what was asked for.
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

// body is what a server sends: its errors are told from those of the place
// that the bytes go to, and each byte is a sign of life.
type body struct {
	r       io.Reader
	address *url.URL
	judge   func(error) error
	alive   func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 {
		b.alive()
	}
	if err != nil && err != io.EOF {
		err = b.judge(fmt.Errorf("%s: %w", b.address.Redacted(), err))
	}
	return n, err
}
