package tartest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
)

// Entry is an entry of an archive. Pack sets its size.
type Entry struct {
	tar.Header
	Content string
}

// File returns a regular file.
func File(name, content string, mode int64) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, content}
}

// Link returns a symbolic link.
func Link(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}}
}

// Pack returns a tar archive, which depends only on the entries. It panics if package tar
// refuses a header.
func Pack(entries ...Entry) []byte {
	var out bytes.Buffer // whose Write never fails
	w := tar.NewWriter(&out)
	for _, e := range entries {
		e.Size = int64(len(e.Content))
		if err := w.WriteHeader(&e.Header); err != nil {
			panic(err)
		}
		_, _ = w.Write([]byte(e.Content))
	}
	_ = w.Close()
	return out.Bytes()
}

// PackGzip returns a gzipped Pack.
func PackGzip(entries ...Entry) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(Pack(entries...))
	_ = z.Close()
	return out.Bytes()
}
