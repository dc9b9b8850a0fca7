package registry

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gaol/rootfs/download"
	"gaol/rootfs/oci"
)

// registryTransport sends the requests to a registry, and to the servers that the registry refers
// to: for tokens, and for blobs that it keeps elsewhere.
type registryTransport struct {
	base     *download.Transport
	loopback bool // the registry is on this host's loopback interface
}

func newTransport(registry string, stall time.Duration) *registryTransport {
	host := (&url.URL{Host: registry}).Hostname()
	return &registryTransport{download.NewTransport(stall), isLoopback(host)}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// RoundTrip implements [http.RoundTripper]. It refuses addresses that a registry must not
// refer to. It bounds every response that is not a blob, and checks the digests of
// manifests.
func (t *registryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	toLoopback := isLoopback(req.URL.Hostname())
	if toLoopback && !t.loopback || req.URL.Scheme != "https" && !toLoopback {
		return nil, fmt.Errorf("%s://%s: %w", req.URL.Scheme, req.URL.Host, oci.ErrInsecure)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil || isBlob(req) { // a blob has a known size, which its reader checks
		return resp, err
	}
	resp.Body = &boundedBody{resp.Body, oci.MaxDocument + 1}
	if want, named := manifestDigest(req); named && resp.StatusCode == http.StatusOK {
		// The library checks it too, but callers cannot recognize its error.
		if resp.Body, err = oci.Verified(resp.Body, want); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// manifestDigest returns the digest by which req asks for a manifest, if it does.
func manifestDigest(req *http.Request) (v1.Hash, bool) {
	if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, "/manifests/") {
		return v1.Hash{}, false
	}
	want, err := v1.NewHash(path.Base(req.URL.Path))
	return want, err == nil
}

// isBlob reports whether req asks for a blob, or is a redirect of such a request. Other
// requests are for manifests and tokens.
func isBlob(req *http.Request) bool {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return strings.Contains(req.URL.Path, "/blobs/")
}

// boundedBody is a response body that fails after left bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: a response of more than %d bytes", oci.ErrMalformed, oci.MaxDocument)
	}
	return n, err
}
