package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// endless is a stream of start and then zeros without end. It counts the bytes read.
type endless struct {
	start *bytes.Reader
	read  int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 1<<30 {
		return 0, io.EOF // ends a failing test
	}
	n, _ := e.start.Read(p)
	clear(p[n:])
	e.read += int64(len(p))
	return len(p), nil
}

// headerOf makes the header of an entry without its content.
func headerOf(t *testing.T, h tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, tar.NewWriter(&out).WriteHeader(&h))
	return out.Bytes()
}

// sparseOf makes an entry of five bytes, whose header claims size bytes in the archive.
func sparseOf(size int) []byte {
	const record, places = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n21 GNU.sparse.name=x\n25 GNU.sparse.realsize=5\n", "1\n0\n5\n"
	pad := func(text string) string { return text + strings.Repeat("\x00", 512-len(text)) }
	return []byte(string(rawHeader('x', "PaxHeaders/x", len(record))) + pad(record) + string(rawHeader('0', "x", size)) + pad(places))
}

// TestBombs checks that the content of an entry larger than the limit is not read.
func TestBombs(t *testing.T) {
	const claimed, slack = 4 << 30, 4 << 10
	for name, start := range map[string][]byte{
		"file":      headerOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: claimed}),
		"whiteout":  headerOf(t, tar.Header{Typeflag: tar.TypeReg, Name: ".wh.x", Size: claimed}),
		"sparse":    sparseOf(claimed),
		"cont":      headerOf(t, tar.Header{Typeflag: tar.TypeCont, Name: "x", Size: claimed}),
		"long name": headerOf(t, tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("x/", 120) + "x", Size: claimed}),
	} {
		p := newPlace(t)
		tree, err := Open(p.root, Limits{Bytes: 64 << 20})
		must(t, err)
		r := &endless{start: bytes.NewReader(start)}
		// Package tar itself detects that the sparse entry is larger than it claims.
		if err := tree.Apply(t.Context(), r); err == nil || name != "sparse" && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if r.read > int64(len(start))+slack {
			t.Errorf("%s: read %d bytes", name, r.read)
		}
		must(t, tree.Close())
	}
}

// TestReader checks the bound for all ways of reading.
func TestReader(t *testing.T) {
	const most = 1 << 10
	read := func(r *Reader) error { _, err := io.Copy(io.Discard, r); return err }
	seek := func(n int64) func(*Reader) error {
		return func(r *Reader) error { _, err := r.Seek(n, io.SeekCurrent); return err }
	}
	for name, tc := range map[string]struct {
		size int64
		do   func(*Reader) error
		want error
		read int64
	}{
		"all":            {most, read, nil, most},
		"too much":       {2 * most, read, ErrTooLarge, 2 * most},
		"skip all":       {most, seek(most), nil, most},
		"skip too much":  {2 * most, seek(most + 1), ErrTooLarge, 0},
		"skip the end":   {10, seek(11), io.ErrUnexpectedEOF, 10},
		"skip backwards": {10, seek(-1), errors.ErrUnsupported, 0},
	} {
		source := strings.NewReader(strings.Repeat("x", int(tc.size)))
		r := NewReader(t.Context(), source, most)
		if err := tc.do(r); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := tc.size - int64(source.Len()); got != tc.read {
			t.Errorf("%s: read %d bytes, want %d", name, got, tc.read)
		}
		if at, err := r.Seek(0, io.SeekCurrent); tc.want == nil && (err != nil || at != tc.read) {
			t.Errorf("%s: at %d, %v", name, at, err)
		}
	}
}
