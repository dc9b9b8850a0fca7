package oci

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// registryScheme before a reference excludes a file of the same name.
const registryScheme = "docker://"

// repository is an image's repository in a registry.
type repository struct {
	repo   name.Repository
	puller *remote.Puller
}

func openRegistry(ctx context.Context, ref string, o Options, want v1.Platform) (_ *Image, err error) {
	parsed, err := name.ParseReference(strings.TrimPrefix(ref, registryScheme))
	if err != nil {
		return nil, fmt.Errorf("%w: neither a file nor the name of an image: %w", ErrNoImage, err)
	}
	transport := newTransport(parsed.Context().RegistryStr(), o.Stall)
	defer func() {
		if err != nil {
			transport.base.CloseIdleConnections()
		}
	}()
	keys := o.Keychain
	if keys == nil {
		keys = authn.DefaultKeychain
	}
	puller, err := remote.NewPuller(remote.WithContext(ctx), remote.WithTransport(transport),
		remote.WithAuthFromKeychain(keys), remote.WithUserAgent("gaol"), remote.WithJobs(1))
	if err != nil {
		return nil, err
	}
	top, err := puller.Get(ctx, parsed)
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	i, err := assemble(ctx, &repository{parsed.Context(), puller}, top.Manifest, top.Digest, want)
	if err != nil {
		return nil, err
	}
	i.Kind, i.close = "registry", transport.base.CloseIdleConnections
	return i, nil
}

func (r *repository) manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	m, err := r.puller.Get(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	return m.Manifest, nil // the transport has checked its digest
}

func (r *repository) layer(d v1.Descriptor) (Layer, error) {
	return Layer{Digest: d.Digest, Size: d.Size, Open: func(ctx context.Context) (io.ReadCloser, error) { return r.blob(ctx, d) }}, nil
}

func (r *repository) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	l, err := r.puller.Layer(ctx, r.repo.Digest(d.Digest.String()))
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	body, err := l.Compressed()
	if err != nil {
		return nil, remoteError(ctx, err)
	}
	return body, nil
}
