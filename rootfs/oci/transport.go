package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var errStalled = errors.New("the server has gone quiet")

// carrier is how requests get to a registry, and to where that sends us: for tokens,
// and for blobs that it keeps elsewhere.
type carrier struct {
	base     *http.Transport
	loopback bool // the registry is on this host's own interface
	stall    time.Duration
}

func newTransport(registry string, stall time.Duration) *carrier {
	// Its own, whose connections end with the import; proxies are the environment's.
	return &carrier{
		base: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: stall,
		},
		loopback: isLoopback(hostOf(registry)),
		stall:    stall,
	}
}

// Close ends the connections. It can't fail.
func (c *carrier) Close() error {
	c.base.CloseIdleConnections()
	return nil
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// RoundTrip refuses addresses that a registry must not send us to, and watches over
// what it answers.
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	toLoopback := isLoopback(req.URL.Hostname())
	if toLoopback && !c.loopback || req.URL.Scheme != "https" && !toLoopback {
		return nil, fmt.Errorf("%s://%s: %w", req.URL.Scheme, req.URL.Host, ErrInsecure)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	watchdog := time.AfterFunc(c.stall, func() { cancel(errStalled) })
	end := func() {
		watchdog.Stop()
		cancel(nil)
	}
	resp, err := c.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), errStalled) {
			err = errStalled
		}
		end()
		return nil, err
	}
	left := int64(maxDocument + 1)
	if isBlob(req) {
		left = math.MaxInt64 // it has a size of its own, which its reader knows
	}
	resp.Body = &watchedBody{resp.Body, ctx, end, func() { watchdog.Reset(c.stall) }, left}
	if want, named := manifestDigest(req); named && resp.StatusCode == http.StatusOK {
		return checkedManifest(resp, want)
	}
	return resp, nil
}

// manifestDigest is the digest by which req asks for a manifest, if it does.
func manifestDigest(req *http.Request) (v1.Hash, bool) {
	if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, "/manifests/") {
		return v1.Hash{}, false
	}
	want, err := v1.NewHash(path.Base(req.URL.Path))
	return want, err == nil
}

// checkedManifest compares an answer with its digest. The library does so too, with
// an error that nobody can tell from others.
func checkedManifest(resp *http.Response, want v1.Hash) (*http.Response, error) {
	text, err := readDocument(resp.Body)
	resp.Body.Close()
	if err == nil {
		err = checkDocument(text, want)
	}
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

// isBlob tells a request for a layer, and one that it was redirected to, from those
// for a manifest or a token.
func isBlob(req *http.Request) bool {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return strings.Contains(req.URL.Path, "/blobs/")
}

// watchedBody is what a server sends: bounded, and each byte is a sign of life.
type watchedBody struct {
	io.ReadCloser
	ctx   context.Context
	end   func()
	alive func()
	left  int64
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.alive()
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: an answer of more than %d bytes", ErrMalformed, maxDocument)
	}
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
