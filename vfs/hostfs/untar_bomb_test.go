package hostfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"
)

// repeated is an endless stream of one text. It counts the bytes read.
type repeated struct {
	text []byte
	read int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.read > 1<<28 {
		return 0, io.EOF // ends a failing test
	}
	n := copy(p, r.text[r.read%len(r.text):])
	r.read += n
	return n, nil
}

// TestUntarBombs checks that endless or exaggerated headers stop the reading of an archive.
func TestUntarBombs(t *testing.T) {
	f, _ := newMemoryFS(t, Limits{})
	headers := func(h tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush() // pads a global header; fails if content is missing
		return out.Bytes()
	}
	attributes := headers(tar.Header{Typeflag: tar.TypeReg, Name: "x", PAXRecords: map[string]string{"GAOL.x": "y"}})
	for name, tc := range map[string]struct {
		text []byte
		most int
	}{
		"file":                     {headers(tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 40 << 30}), 16 << 10},
		"global headers":           {headers(tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}), maxHeaders},
		"headers without an entry": {attributes[:len(attributes)-512], maxHeaders}, // the entry is cut off
	} {
		r := &repeated{text: tc.text}
		_, err := f.Untar(r, "/", UntarOptions{})
		if _, is := errors.AsType[*LimitError](err); !is {
			t.Errorf("%s: %v", name, err)
		}
		if r.read > tc.most {
			t.Errorf("%s: read %d bytes", name, r.read)
		}
	}
}
