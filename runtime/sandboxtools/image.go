package sandboxtools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gaol/rootfs"
)

// image finds the image that a name means. One that Options.Images lists by where it
// comes from is imported if the store lacks it; nothing else that a caller names is
// asked for elsewhere, or read.
func (t *Toolbox) image(ctx context.Context, name string) (*rootfs.Image, error) {
	store, err := rootfs.Open(t.o.Create.Store)
	if err != nil {
		return nil, err
	}
	source, listed := t.sources[name]
	var image *rootfs.Image
	if source != "" {
		image, err = t.imported(ctx, store, source)
	} else {
		image, err = store.Lookup(name)
	}
	switch {
	case err == nil && t.o.Images != nil && !listed && name != t.o.Create.Image:
		return nil, refuse(Permission, "imageName", "image %q is not among those that are allowed: list it in Options.Images", name)
	case err == nil || ctx.Err() != nil:
		return image, err
	case errors.Is(err, rootfs.ErrNotFound) && !listed:
		return nil, refuse(NotFound, "imageName", "image %.128q: %w: list it in Options.Images, or import it with gaol image import", name, rootfs.ErrNotFound)
	}
	return nil, imageError(err)
}

// imageCodes are of what a look into the store, or an import, can fail for. The first
// that matches counts.
var imageCodes = []struct {
	cause error
	code  Code
	cure  string // where the cause does not say it
}{
	{rootfs.ErrNotFound, NotFound, "make it with gaol image build or gaol image import"},
	{rootfs.ErrAmbiguous, InvalidArgument, "give more of its id"},
	{rootfs.ErrNoImage, NotFound, "correct it in Options.Images"},
	{rootfs.ErrUnauthorized, Unauthorized, "use docker login on the host"},
	{rootfs.ErrInsecure, Permission, ""},
	{rootfs.ErrTooLarge, Limit, "import it with gaol image import --max-size"},
	{rootfs.ErrPlatform, BadImage, ""},
	{rootfs.ErrDigest, BadImage, ""},
	{rootfs.ErrTruncated, BadImage, ""},
	{rootfs.ErrMalformed, BadImage, ""},
	{rootfs.ErrRefused, BadImage, ""},
}

func imageError(err error) *Error {
	for _, row := range imageCodes {
		if !errors.Is(err, row.cause) {
			continue
		}
		if row.cure != "" {
			err = fmt.Errorf("%w: %s", err, row.cure)
		}
		return &Error{Code: row.code, Place: "imageName", Err: err}
	}
	return &Error{Code: Internal, Place: "imageName", Err: err}
}

const registryScheme = "docker://"

// sourcesOf gives what an entry of Options.Images is imported from, in the words of
// [rootfs.Store.Import]: "" of one that only the store has.
func sourcesOf(images []string) (map[string]string, error) {
	sources := make(map[string]string, len(images))
	for _, entry := range images {
		switch {
		case strings.HasPrefix(entry, "/") || strings.HasPrefix(entry, "./") || strings.HasPrefix(entry, "../"):
			path, err := filepath.Abs(entry) // wherever this process goes from here
			if err != nil {
				return nil, err
			}
			sources[entry] = path
		case strings.HasPrefix(entry, registryScheme):
			sources[entry] = entry
		case namesRegistry(entry):
			// Said outright: a folder of that name, wherever this process is, is not meant.
			sources[entry] = registryScheme + entry
		case entry == "" || strings.ContainsAny(strings.TrimPrefix(entry, "sha256:"), "/:"):
			return nil, fmt.Errorf("%q is no name or id: put a registry's host or docker:// before a reference, / or ./ before a path", entry)
		default:
			sources[entry] = ""
		}
	}
	return sources, nil
}

// namesRegistry reports whether a reference begins with a registry's host, as
// registry.example/app:1 does. There is no registry that is meant by the lack of one.
func namesRegistry(reference string) bool {
	host, _, found := strings.Cut(reference, "/")
	return found && strings.ContainsAny(host, ".:")
}

// imported gives what a source was imported as, and imports it when it is first asked
// for: one at a time, so that who wants the same waits for it.
func (t *Toolbox) imported(ctx context.Context, store *rootfs.Store, source string) (*rootfs.Image, error) {
	name := pulledName(strings.TrimPrefix(source, registryScheme))
	image, err := store.Lookup(name)
	if !errors.Is(err, rootfs.ErrNotFound) {
		return image, err
	}
	select {
	case t.pulls <- struct{}{}:
		defer func() { <-t.pulls }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	image, err = store.Lookup(name)
	if errors.Is(err, rootfs.ErrNotFound) {
		image, err = store.Import(ctx, source, rootfs.ImportOptions{Name: name})
	}
	return image, err
}

// pulledName is what an image is called in the store that came from a reference or a
// path, which has characters that no name there has.
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
