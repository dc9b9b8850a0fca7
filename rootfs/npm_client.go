package rootfs

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"gaol/internal/lazyregexp"
	"gaol/rootfs/download"
)

const (
	tries        = 3
	maxFetchTime = 15 * time.Minute // for one try, against a server that is slow but never stalls
)

var errDowngrade = errors.New("redirect from https to http")

// npmClient fetches package descriptions and tarballs from a registry. It does not trust the
// registry, and callers must check the responses.
type npmClient struct {
	in   *inputs
	http *http.Client
	base *url.URL
}

// newNPMClient returns an npmClient for the registry and the proxies that are configured.
func newNPMClient(in *inputs) (*npmClient, error) {
	base, err := configuredRegistry()
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: download.NewTransport(in.stall), CheckRedirect: checkRedirect}
	return &npmClient{in, client, base}, nil
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
func (c *npmClient) Close() { c.http.CloseIdleConnections() }

// get passes the body at path, below the registry's address, to consume. If the transfer
// fails, it retries and calls consume again with a new body. The size is -1 if unknown.
func (c *npmClient) get(ctx context.Context, path, accept string, consume func(io.Reader, int64) error) error {
	address := c.base.JoinPath(path)
	for try, pause := 1, c.in.pause; ; try, pause = try+1, 2*pause {
		err := c.try(ctx, address, accept, consume)
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if _, again := errors.AsType[transientError](err); !again || try == tries {
			return fmt.Errorf("%s: %w", address.Redacted(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// transientError is an error of a transfer that may succeed if it is retried.
type transientError struct{ error }

func (e transientError) Unwrap() error { return e.error }

// try is get without retries.
func (c *npmClient) try(ctx context.Context, address *url.URL, accept string, consume func(io.Reader, int64) error) error {
	ctx, stop := context.WithTimeout(ctx, maxFetchTime)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
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
	if errors.Is(err, errDowngrade) {
		return err
	}
	if err != nil {
		return transientError{err}
	}
	defer resp.Body.Close()
	if status := resp.StatusCode; status != http.StatusOK {
		err := errors.New(resp.Status)
		if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
			return transientError{err}
		}
		return err
	}
	return consume(body{resp.Body}, resp.ContentLength)
}

// body is a response body, whose errors are transient.
type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = transientError{err}
	}
	return n, err
}

// npmPackage is one version of a package. The name of an image is a hash over its packages as
// JSON.
type npmPackage struct {
	Name, Version string
	Integrity     string // hex digits of the SHA-512 of the tarball
}

// String returns the name and version as npm writes them, such as "npm@11.0.0".
func (p npmPackage) String() string { return p.Name + "@" + p.Version }

// npmVersion matches a version of Node, or its first one or two numbers. It does not match
// pre-releases.
var npmVersion = lazyregexp.New(`^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$`)

// npmPins maps "name@version" to an integrity text that is known without the registry.
type npmPins map[string]string

// Find returns the package. It is an error if its integrity is not pinned.
func (p npmPins) Find(name, version string) (npmPackage, error) {
	return newNPMPackage(name, version, p[name+"@"+version])
}

// sha512Form matches the SHA-512 in a subresource integrity text, the form that registries and lock files use.
// Other hashes beside it are weaker. After a question mark, there are options, of which none are defined.
var sha512Form = lazyregexp.New(`(?:^|\s)sha512-([A-Za-z0-9+/]{86}==)(?:\?\S*)?(?:\s|$)`)

func newNPMPackage(name, version, integrity string) (npmPackage, error) {
	found := sha512Form().FindStringSubmatch(integrity)
	if found == nil {
		return npmPackage{}, fmt.Errorf("%s@%s: integrity %q: no sha512", name, version, integrity)
	}
	sum, err := base64.StdEncoding.DecodeString(found[1])
	return npmPackage{name, version, hex.EncodeToString(sum)}, err
}
