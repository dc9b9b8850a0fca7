package sandboxtools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"gaol/rootfs"
)

// image finds the image that a name means. One of Options.Images that the store lacks
// is pulled from its registry.
func (t *Toolbox) image(ctx context.Context, name string) (*rootfs.Image, error) {
	listed := slices.Contains(t.o.Images, name)
	if t.o.Images != nil && name != t.o.Create.Image && !listed {
		return nil, refuse(Permission, "imageName", "image %q is not among those that are allowed", name)
	}
	store, err := rootfs.Open(t.o.Create.Store)
	if err != nil {
		return nil, err
	}
	image, err := store.Lookup(name)
	if errors.Is(err, rootfs.ErrNotFound) && listed && namesRegistry(name) {
		image, err = t.pull(ctx, store, name)
	}
	switch {
	case errors.Is(err, rootfs.ErrNotFound):
		return nil, &Error{Code: NotFound, Place: "imageName", Err: err}
	case errors.Is(err, rootfs.ErrAmbiguous):
		return nil, &Error{Code: InvalidArgument, Place: "imageName", Err: err}
	case err != nil && ctx.Err() == nil:
		return nil, &Error{Code: Internal, Place: "imageName", Err: err}
	}
	return image, err
}

// namesRegistry reports whether a reference begins with a registry's host, as
// registry.example/app:1 does. There is no registry that is meant by the lack of one.
func namesRegistry(reference string) bool {
	host, _, found := strings.Cut(reference, "/")
	return found && strings.ContainsAny(host, ".:")
}

// pull imports an image when it is first asked for: one at a time, so that who wants the
// same waits for it.
func (t *Toolbox) pull(ctx context.Context, store *rootfs.Store, reference string) (*rootfs.Image, error) {
	select {
	case t.pulls <- struct{}{}:
		defer func() { <-t.pulls }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	name := pulledName(reference)
	image, err := store.Lookup(name)
	if errors.Is(err, rootfs.ErrNotFound) {
		// Said outright: a folder of that name, wherever this process happens to be, is not meant.
		image, err = store.Import(ctx, "docker://"+reference, rootfs.ImportOptions{Name: name})
	}
	return image, err
}

// pulledName is what an image is called in the store that was pulled by a reference,
// which has characters that no name there has.
func pulledName(reference string) string {
	const most = 100
	sum := sha256.Sum256([]byte(reference))
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(reference))
	return "pulled-" + plain[:min(len(plain), most)] + "-" + hex.EncodeToString(sum[:4])
}
