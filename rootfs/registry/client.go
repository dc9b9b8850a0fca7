package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"gaol/rootfs/download"
	"gaol/rootfs/oci"
)

// Client implements [oci.Registry].
type Client struct {
	// Keychain finds the credentials for a registry. Nil: the credentials saved by `docker login`.
	Keychain authn.Keychain
}

// repository is an image's repository in a registry.
type repository struct {
	repo      name.Repository
	puller    *remote.Puller
	transport *registryTransport
	top       *remote.Descriptor
}

// Open implements [oci.Registry].
func (c Client) Open(ctx context.Context, reference string, stall time.Duration) (_ oci.Repository, err error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, fmt.Errorf("%w: neither a file nor the name of an image: %w", oci.ErrNoImage, err)
	}
	r := &repository{repo: ref.Context(), transport: newTransport(ref.Context().RegistryStr(), stall)}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	keys := cmp.Or[authn.Keychain](c.Keychain, authn.DefaultKeychain)
	r.puller, err = remote.NewPuller(remote.WithContext(ctx), remote.WithTransport(r.transport),
		remote.WithAuthFromKeychain(keys), remote.WithUserAgent("gaol"), remote.WithJobs(1))
	if err != nil {
		return nil, err
	}
	if r.top, err = r.puller.Get(ctx, ref); err != nil {
		return nil, remoteError(ctx, err)
	}
	return r, nil
}

func (r *repository) Close() { r.transport.base.CloseIdleConnections() }

func (r *repository) Image() (text []byte, digest v1.Hash) { return r.top.Manifest, r.top.Digest }

func (r *repository) Manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	m, err := r.puller.Get(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	return m.Manifest, nil // the transport has checked its digest
}

func (r *repository) Blob(ctx context.Context, digest v1.Hash) (io.ReadCloser, error) {
	l, err := r.puller.Layer(ctx, r.repo.Digest(digest.String()))
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	body, err := l.Compressed()
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	return body, nil
}

// remoteError wraps an error of the registry's answer in the matching error of package oci.
func remoteError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fmt.Errorf("%w: %w", oci.ErrMalformed, err)
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("%w: %w", oci.ErrUnauthorized, err)
		case http.StatusNotFound:
			return fmt.Errorf("%w: %w", oci.ErrNoImage, err)
		}
	}
	return err
}

// registryTransport sends the requests to a registry, and to the servers that the registry refers
// to: for tokens, and for blobs that it keeps elsewhere.
type registryTransport struct {
	base     *http.Transport
	loopback bool // the registry is on this host's loopback interface
}

func newTransport(registry string, stall time.Duration) *registryTransport {
	return &registryTransport{download.NewTransport(stall), isLoopback((&url.URL{Host: registry}).Hostname())}
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
	if err != nil || isBlob(req) { // the reader of a blob checks its known size
		return resp, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, oci.MaxDocument)
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
