package layer

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// What a layer is refused for, to be matched with errors.Is.
var (
	// ErrRefused is a layer that says what no honest one says.
	ErrRefused = errors.New("layer refused")

	// ErrTooLarge is one that goes beyond [Limits].
	ErrTooLarge = errors.New("larger than the limit")
)

// Limits bound what all layers of an image may hold together. Zero: the default.
type Limits struct {
	// Bytes of the archives once they are decompressed, and of the files they hold.
	// The default, 8 GiB, is four times the largest images of browsers and compilers.
	Bytes int64

	// Entries of the archives, and folders that come into being with them. The
	// default, 500,000, is some ten times what a whole distribution with Node has.
	Entries int64
}

// Defaults of Limits.
const (
	DefaultBytes   = 8 << 30
	DefaultEntries = 500_000
)

// What a path may be. Linux opens no longer path than 4,095 bytes, the host's own
// folder included; npm's deepest trees have some 40 levels.
const (
	maxPath  = 2048 // bytes, links resolved
	maxDepth = 128  // folders, each an open descriptor when they are removed
	maxName  = 255  // bytes, NAME_MAX
)

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Entries == 0 {
		l.Entries = DefaultEntries
	}
	return l
}

// budget is what is left of Limits.
type budget struct {
	limits           Limits
	entries          int64
	streamed, stored int64 // bytes
}

func newBudget(l Limits) budget {
	l = l.withDefaults()
	return budget{l, l.Entries, l.Bytes, l.Bytes}
}

func (b *budget) entry() error {
	if b.entries--; b.entries < 0 {
		return fmt.Errorf("%w of %d files and folders", ErrTooLarge, b.limits.Entries)
	}
	return nil
}

// store takes a file's bytes, which for a sparse one are not in the archive.
func (b *budget) store(size int64) error {
	if size < 0 || size > b.stored {
		return fmt.Errorf("%w of %d bytes", ErrTooLarge, b.limits.Bytes)
	}
	b.stored -= size
	return nil
}

// reader fails once more than the budget has been read, or ctx has ended.
func (b *budget) reader(ctx context.Context, r io.Reader) io.Reader { return &boundedReader{ctx, r, b} }

type boundedReader struct {
	ctx context.Context
	r   io.Reader
	b   *budget
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if r.b.streamed -= int64(n); r.b.streamed < 0 {
		return 0, fmt.Errorf("%w of %d bytes", ErrTooLarge, r.b.limits.Bytes)
	}
	return n, err
}
