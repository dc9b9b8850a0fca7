package server

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"gaol/test/server/servertest"
)

func testArchives(t *testing.T, s *servertest.Server) {
	from, to := newBox(t, s, alice, nil), newBox(t, s, bob, nil)
	from.run(t, `import fs from 'node:fs';
		fs.mkdirSync('d/e', { recursive: true }); fs.writeFileSync('d/run', Buffer.from([0, 255]), { mode: 0o751 });
		fs.symlinkSync('/etc/passwd', 'd/link'); fs.writeFileSync(Buffer.from('/workspace/d/\xff', 'latin1'), 'x');
		fs.writeFileSync('d/secret', 'x', { mode: 0 })`)
	r := from.request(t, "GET", nil, "files/tar", "path", "/workspace/d")
	res, err := from.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	archive, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/x-tar" {
		t.Fatalf("status %s, header %v, error %v", res.Status, res.Header, err)
	}
	if got := res.Trailer.Get("Gaol-Skipped"); got != "1" { // secret
		t.Errorf("the trailer has %q", got)
	}
	to.put(t, bytes.NewReader(archive), "files/tar", "path", "/workspace/copy").Want(t, http.StatusNotFound)
	unpacked := to.put(t, bytes.NewReader(archive), "files/tar", "path", "/workspace/copy/d", "createParents", "true")
	unpacked.Want(t, http.StatusOK)
	if got := string(unpacked.Body); got != `{"entries":4,"bytes":3}`+"\n" {
		t.Errorf("unpacking returned %s", got)
	}
	if got := to.run(t, `import fs from 'node:fs';
		console.log(fs.readFileSync('copy/d/run').toString('hex'), fs.statSync('copy/d/run').mode.toString(8), fs.readlinkSync('copy/d/link'),
			fs.readdirSync('copy/d', 'buffer').map(b => b.toString('hex')).sort()[3], fs.statSync('copy/d/run').uid === process.getuid())`); got != "00ff 100751 /etc/passwd ff true\n" {
		t.Errorf("the guest sees %q", got)
	}
}

// tarOf returns an archive with entries. Those of regular files have the content "x".
func tarOf(t testing.TB, entries ...*tar.Header) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg {
			h.Size = 1
		}
		err := w.WriteHeader(h)
		if h.Typeflag == tar.TypeReg && err == nil {
			_, err = w.Write([]byte("x"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func testHostileArchives(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, uploader, nil)
	file := &tar.Header{Typeflag: tar.TypeReg, Name: "dir/x", Mode: 0o644}
	many := make([]*tar.Header, maxUpload/1024)
	for i := range many {
		many[i] = &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("dir/%d", i), Mode: 0o644}
	}
	for _, c := range []struct {
		name   string
		body   []byte
		status int
		code   string
	}{
		{"device", tarOf(t, &tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}), 422, "invalid"},
		{"fifo", tarOf(t, &tar.Header{Typeflag: tar.TypeFifo, Name: "fifo"}), 422, "invalid"},
		{"outside", tarOf(t, &tar.Header{Typeflag: tar.TypeReg, Name: "../x"}), 422, "invalid"},
		{"absolute", tarOf(t, &tar.Header{Typeflag: tar.TypeReg, Name: "/tmp/x"}), 422, "invalid"},
		{"hard link outside", tarOf(t, &tar.Header{Typeflag: tar.TypeLink, Name: "passwd", Linkname: "../../etc/passwd"}), 422, "invalid"},
		{"hard link to nothing", tarOf(t, &tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: "none"}), 404, "not_found"},
		{"through a link", tarOf(t, &tar.Header{Typeflag: tar.TypeSymlink, Name: "out", Linkname: "/tmp"}, &tar.Header{Typeflag: tar.TypeReg, Name: "out/x"}), 422, "invalid"},
		{"cut off", tarOf(t, file, file)[:1100], 422, "invalid"},
		{"no archive", bytes.Repeat([]byte("no"), 512), 422, "invalid"},
		{"compressed", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00" + string(make([]byte, 1000))), 422, "invalid"},
		{"too large", tarOf(t, many...), 413, "too_large"},
		{"holes", sparse(t, 1<<40), 413, "too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.send(t, "POST", "files/folder", "path", "/workspace/to").Want(t, http.StatusNoContent)
			p := b.put(t, bytes.NewReader(c.body), "files/tar", "path", "/workspace/to").Want(t, c.status)
			if p.Code != c.code {
				t.Errorf("code %q, want %q: %s", p.Code, c.code, p.Detail)
			}
			if got := paths(b.list(t, "path", "/tmp")); slices.Contains(got, "/tmp/x") {
				t.Errorf("/tmp has %v", got)
			}
			b.send(t, "DELETE", "files", "path", "/workspace/to", "recursive", "true").Want(t, http.StatusNoContent)
		})
	}
}

// sparse returns an archive with one file that is a hole (GNU.sparse.realsize).
func sparse(t testing.TB, size int64) []byte {
	t.Helper()
	// Package tar writes no sparse files, and refuses their records: other names of the same length
	// are replaced, which changes no length. The checksum is not of the records.
	text := tarOf(t, &tar.Header{Typeflag: tar.TypeReg, Name: "hole", Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XXX.sparse.major": "0", "XXX.sparse.minor": "1", "XXX.sparse.numblocks": "1",
		"XXX.sparse.map": fmt.Sprintf("%d,1", size-1), "XXX.sparse.size": fmt.Sprint(size),
	}})
	return bytes.ReplaceAll(text, []byte("XXX.sparse"), []byte("GNU.sparse"))
}

// An archive that cannot be completed does not look complete.
func testArchiveOfClosedSandbox(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, map[string]any{"limits": map[string]any{"diskBytes": 256 << 20}})
	b.run(t, `import fs from 'node:fs'; fs.writeFileSync('big', ''); fs.truncateSync('big', 200 << 20)`)
	res, err := b.Do(b.request(t, "GET", nil, "files/tar", "path", "/workspace"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	servertest.Send(t, b.Client, "DELETE", "/v1/sandboxes/"+b.id, nil).Want(t, http.StatusNoContent)
	if _, err := io.Copy(io.Discard, res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the rest of the archive: %v", err)
	}
}
