package layer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
)

// Errors of a refused layer, to be matched with errors.Is.
var (
	// ErrRefused is the error for an entry that no valid layer has.
	ErrRefused = errors.New("layer refused")

	// ErrTooLarge is the error for a layer that exceeds [Limits].
	ErrTooLarge = errors.New("larger than the limit")
)

// Limits bound all layers of an image together. A zero field means its default.
type Limits struct {
	// Bytes bounds the size of the decompressed archives, and the size of their files.
	// The default, 8 GiB, is four times the largest images of browsers and compilers.
	Bytes int64

	// Entries bounds the number of entries and of parent folders made for them. The
	// default, 500,000, is about ten times the count of a whole distribution with Node.
	Entries int64
}

// The defaults of Limits.
const (
	DefaultBytes   = 8 << 30
	DefaultEntries = 500_000
)

// Bounds of a path. Linux cannot open paths of more than 4,095 bytes, including the host's
// folder. npm's deepest trees have about 40 levels.
const (
	maxPath  = 2048 // bytes, with links resolved
	maxDepth = 128  // folders; removing them keeps one descriptor open for each
	maxName  = 255  // bytes, NAME_MAX
)

// WithDefaults replaces zero fields by their defaults.
func (l Limits) WithDefaults() Limits {
	return Limits{cmp.Or(l.Bytes, DefaultBytes), cmp.Or(l.Entries, DefaultEntries)}
}

// budget is the unused rest of Limits.
type budget struct {
	limits           Limits
	entries          int64
	streamed, stored int64 // bytes
}

// Left returns the rest of the limits.
func (t *Tree) Left() Limits { return Limits{max(1, t.budget.stored), max(1, t.budget.entries)} }

func (b *budget) entry() error {
	if b.entries--; b.entries < 0 {
		return fmt.Errorf("%w of %d files and folders", ErrTooLarge, b.limits.Entries)
	}
	return nil
}

// reader returns a Reader that fails when the budget is used up or ctx has ended.
func (b *budget) reader(ctx context.Context, r io.Reader) *Reader {
	return &Reader{ctx, r, b.limits.Bytes, &b.streamed}
}

// Reader reads a tar archive of a bounded size. Package tar skips the content of entries
// by calling Seek, which fails without reading if the content exceeds the bound.
type Reader struct {
	ctx  context.Context
	r    io.Reader
	most int64
	left *int64
}

// NewReader returns a Reader of at most most bytes. Its reads fail after ctx has ended.
func NewReader(ctx context.Context, r io.Reader, most int64) *Reader {
	return &Reader{ctx, r, most, &most}
}

// Read fails with ErrTooLarge when more bytes arrive than the bound.
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

// Seek reads and discards n bytes. whence must be io.SeekCurrent, and n not negative.
func (r *Reader) Seek(n int64, whence int) (int64, error) {
	if whence != io.SeekCurrent || n < 0 {
		return 0, fmt.Errorf("seek: %w", errors.ErrUnsupported)
	}
	if n > *r.left {
		return 0, r.tooLarge()
	}
	_, err := io.CopyN(io.Discard, r, n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return r.most - *r.left, err
}

func (r *Reader) tooLarge() error { return fmt.Errorf("%w of %d bytes", ErrTooLarge, r.most) }
