package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"gaol/rootfs/oci"
)

// Client implements [oci.Registry].
type Client struct {
	// Keychain finds the credentials for a registry. Nil: the ones that `docker login` saved.
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
	keys := c.Keychain
	if keys == nil {
		keys = authn.DefaultKeychain
	}
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

func (r *repository) Manifest(ctx context.Context, digest v1.Hash) ([]byte, error) {
	m, err := r.puller.Get(ctx, r.repo.Digest(digest.String()))
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
