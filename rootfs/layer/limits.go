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
func (b *budget) reader(ctx context.Context, r io.Reader) *Reader {
	return &Reader{ctx, r, b.limits.Bytes, &b.streamed}
}

// Reader reads a tar archive of a bounded size. Package tar skips the content of entries
// by Seek, which fails before it reads anything if an entry is larger than what is left.
type Reader struct {
	ctx  context.Context
	r    io.Reader
	most int64
	left *int64
}

// NewReader returns a Reader of at most most bytes. It fails once ctx has ended.
func NewReader(ctx context.Context, r io.Reader, most int64) *Reader {
	return &Reader{ctx, r, most, &most}
}

// Read fails with ErrTooLarge once more than the bound has been read.
func (r *Reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if *r.left -= int64(n); *r.left < 0 {
		return 0, r.tooLarge()
	}
	return n, err
}

// Seek reads and discards n bytes. Whence must be io.SeekCurrent, and n not negative.
func (r *Reader) Seek(n int64, whence int) (int64, error) {
	if whence != io.SeekCurrent || n < 0 {
		return 0, fmt.Errorf("seek: %w", errors.ErrUnsupported)
	}
	if n > *r.left {
		return 0, r.tooLarge()
	}
	if _, err := io.CopyN(io.Discard, r, n); err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, err
	}
	return r.most - *r.left, nil
}

func (r *Reader) tooLarge() error { return fmt.Errorf("%w of %d bytes", ErrTooLarge, r.most) }
