package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// What Open, and the reading of a layer, can fail for, to be matched with errors.Is.
var (
	// ErrDigest is content that is not what its digest says.
	ErrDigest = errors.New("content does not match its digest")

	// ErrTruncated is content that ends too early.
	ErrTruncated = errors.New("content ends too early")

	// ErrPlatform is an image that is not for the platform asked for.
	ErrPlatform = errors.New("no image for this platform")

	// ErrUnauthorized is a registry that wants credentials, or other ones.
	ErrUnauthorized = errors.New("not authorized")

	// ErrNoImage is a registry, a file or a folder that has no such image.
	ErrNoImage = errors.New("no such image there")

	// ErrMalformed is an image whose parts do not say what they should.
	ErrMalformed = errors.New("malformed image")

	// ErrInsecure is a registry that would have us speak plain http.
	ErrInsecure = errors.New("plain http is for the loopback interface only")
)

// remoteError gives what a registry answered one of our errors.
func remoteError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("%w: %w", ErrUnauthorized, err)
		case http.StatusNotFound:
			return fmt.Errorf("%w: %w", ErrNoImage, err)
		}
	}
	return err
}
