package server

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/resultjson"
	"gaol/test/server/servertest"
)

// list lists a folder.
func (b *box) list(t testing.TB, query ...string) *service.FileList {
	t.Helper()
	res := b.send(t, "GET", "files/list", query...)
	res.Want(t, http.StatusOK)
	list := &service.FileList{}
	res.Into(t, list)
	return list
}

func (b *box) stat(t testing.TB, query ...string) *resultjson.FileInfo {
	t.Helper()
	res := b.send(t, "GET", "files/stat", query...)
	res.Want(t, http.StatusOK)
	info := &resultjson.FileInfo{}
	res.Into(t, info)
	return info
}

func paths(l *service.FileList) (list []string) {
	for _, f := range l.Files {
		list = append(list, f.Path)
	}
	return list
}

func testFileContent(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	copy(data, "\x00\xff\r\n\xc3\x28")
	// Chunked: its length is not known before.
	b.put(t, iotest.OneByteReader(bytes.NewReader(data[:3])), "files", "path", "/workspace/small").Want(t, http.StatusOK)
	res := b.put(t, bytes.NewReader(data), "files", "path", "/workspace/a/b/data", "createParents", "true", "mode", "0640")
	res.Want(t, http.StatusOK)
	if want := fmt.Sprintf(`"size":%d,"mode":"0640"`, len(data)); !strings.Contains(string(res.Body), want) {
		t.Errorf("writing returned %s, want %s", res.Body, want)
	}
	got := b.send(t, "GET", "files", "path", "/workspace/a/b/data")
	got.Want(t, http.StatusOK)
	if !bytes.Equal(got.Body, data) || got.Header.Get("Content-Type") != "application/octet-stream" || got.Header.Get("Content-Length") != fmt.Sprint(len(data)) {
		t.Errorf("read %d bytes with header %v", len(got.Body), got.Header)
	}
	r := b.request(t, "GET", nil, "files", "path", "/workspace/a/b/data")
	r.Header.Set("Range", "bytes=1048576-1048583")
	if got := servertest.Do(t, b.Client, r); got.Status != http.StatusPartialContent || !bytes.Equal(got.Body, data[1<<20:1<<20+8]) {
		t.Errorf("a range is %d %q", got.Status, got.Body)
	}
	for query, want := range map[string][]byte{"offset=1048576&limit=8": data[1<<20 : 1<<20+8], fmt.Sprintf("offset=%d", len(data)-3): data[len(data)-3:], "offset=99999999": {}} {
		r := b.request(t, "GET", nil, "files", "path", "/workspace/a/b/data")
		r.URL.RawQuery += "&" + query
		if got := servertest.Do(t, b.Client, r); got.Status != http.StatusOK || !bytes.Equal(got.Body, want) {
			t.Errorf("%s: %d, %d bytes", query, got.Status, len(got.Body))
		}
	}
	for name, c := range map[string]struct {
		value  string
		status int
		code   string
	}{
		"Range":               {"bytes=99999999-", http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable"},
		"If-Unmodified-Since": {"Mon, 01 Jan 2001 00:00:00 GMT", http.StatusPreconditionFailed, "precondition_failed"},
	} {
		r := b.request(t, "GET", nil, "files", "path", "/workspace/a/b/data")
		r.Header.Set(name, c.value)
		if p := servertest.Do(t, b.Client, r).Want(t, c.status); p.Code != c.code {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got := b.run(t, `import fs from 'node:fs';
		const s = fs.statSync('a/b/data'); console.log((s.mode & 0o777).toString(8), s.size, fs.readFileSync('small').toString('hex'))`); got != fmt.Sprintf("640 %d 00ff0d\n", len(data)) {
		t.Errorf("the guest sees %q", got)
	}
}

func testFileOperations(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.send(t, "POST", "files/folder", "path", "/workspace/one/two", "createParents", "true", "mode", "700").Want(t, http.StatusNoContent)
	b.send(t, "POST", "files/folder", "path", "/workspace/empty").Want(t, http.StatusNoContent)
	b.write(t, "/workspace/one/two/x", "text")
	b.run(t, `import fs from 'node:fs'; fs.symlinkSync('one/two/x', 'link')`)
	if got, want := paths(b.list(t, "path", "/workspace")), []string{"/workspace/empty", "/workspace/link", "/workspace/one"}; !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
	all := b.list(t, "path", "/workspace", "recursive", "true")
	if got, want := paths(all), []string{"/workspace/empty", "/workspace/link", "/workspace/one", "/workspace/one/two", "/workspace/one/two/x"}; !slices.Equal(got, want) || all.Truncated {
		t.Errorf("below the folder are %v, want %v", got, want)
	}
	if got, want := paths(b.list(t, "path", "/workspace", "recursive", "true", "exclude", "two")), paths(all)[:4]; !slices.Equal(got, want) {
		t.Errorf("without what is in two there are %v, want %v", got, want)
	}
	if few := b.list(t, "path", "/workspace", "recursive", "true", "limit", "2"); len(few.Files) != 2 || !few.Truncated {
		t.Errorf("with a limit of 2 files: %+v", few)
	}
	if i := b.stat(t, "path", "/workspace/link"); i.Type != "file" || i.Size != 4 || i.Mode != "0644" || time.Since(i.Modified) > time.Hour {
		t.Errorf("the file is %+v", i)
	}
	if i := b.stat(t, "path", "/workspace/link", "links", "true"); i.Type != "link" || i.Target != "one/two/x" {
		t.Errorf("the link is %+v", i)
	}
	if i := b.stat(t, "path", "/workspace/one/two"); i.Type != "folder" || i.Mode != "0700" {
		t.Errorf("the folder is %+v", i)
	}
	b.send(t, "POST", "files/move", "from", "/workspace/one/two/x", "to", "/workspace/y").Want(t, http.StatusNoContent)
	if got := b.read(t, "/workspace/y"); got != "text" {
		t.Errorf("the moved file has %q", got)
	}
	b.send(t, "DELETE", "files", "path", "/workspace/y").Want(t, http.StatusNoContent)
	b.send(t, "DELETE", "files", "path", "/workspace/one", "recursive", "true").Want(t, http.StatusNoContent)
	if got, want := paths(b.list(t, "path", "/workspace", "recursive", "true")), []string{"/workspace/empty", "/workspace/link"}; !slices.Equal(got, want) {
		t.Errorf("%v are left, want %v", got, want)
	}
}

func testContentErrors(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.write(t, "/workspace/file", "text")
	b.send(t, "POST", "files/folder", "path", "/workspace/full/x", "createParents", "true").Want(t, http.StatusNoContent)
	b.run(t, `import { execFileSync } from 'node:child_process'; import fs from 'node:fs';
		execFileSync('mkfifo', ['fifo']); fs.symlinkSync('loop', 'loop');
		fs.writeFileSync('own', ''); fs.linkSync('own', 'other'); fs.mkdirSync('locked', { mode: 0 })`)
	for _, c := range []struct {
		method, operation string
		query             []string
		status            int
		code              string
	}{
		{"GET", "files", []string{"path", "/workspace/none"}, 404, "not_found"},
		{"GET", "files", []string{"path", "/workspace"}, 409, "conflict"},
		{"GET", "files", []string{"path", "/workspace/fifo"}, 409, "conflict"},
		{"GET", "files", []string{"path", "/workspace/file/x"}, 409, "conflict"},
		{"GET", "files", []string{"path", "/workspace/loop"}, 422, "invalid"},
		{"GET", "files", []string{"path", "/workspace/../etc/passwd"}, 422, "invalid"},
		{"GET", "files", []string{"path", "workspace/file"}, 422, "invalid"},
		{"GET", "files", []string{"path", "/workspace/file\x00"}, 422, "invalid"},
		{"GET", "files", []string{"path", "/" + strings.Repeat("x/", 2000) + "x"}, 404, "not_found"},
		{"GET", "files", []string{"path", "/" + strings.Repeat("x", 300)}, 422, "invalid"},
		{"GET", "files", []string{"path", "/" + strings.Repeat("x", 5000)}, 422, "invalid"},
		{"GET", "files/list", []string{"path", "/proc"}, 403, "forbidden"},
		{"GET", "files", nil, 422, "invalid"},
		{"GET", "files", []string{"path", "/workspace/file", "other", "1"}, 422, "invalid"},
		{"PUT", "files", []string{"path", "/workspace/fifo"}, 409, "conflict"},
		{"PUT", "files", []string{"path", "/workspace"}, 409, "conflict"},
		{"PUT", "files", []string{"path", "/workspace/own"}, 422, "invalid"}, // it has another name
		{"PUT", "files", []string{"path", "/workspace/no/parent"}, 404, "not_found"},
		{"PUT", "files", []string{"path", "/etc/passwd"}, 403, "forbidden"},
		{"PUT", "files", []string{"path", "/workspace/new", "mode", "4755"}, 422, "invalid"},
		{"PUT", "files", []string{"path", "/workspace/new", "mode", "rw"}, 422, "invalid"},
		{"PUT", "files", []string{"path", "/workspace/new", "mode", "0"}, 422, "invalid"},
		{"POST", "files/folder", []string{"path", "/workspace/file"}, 409, "conflict"},
		{"POST", "files/move", []string{"from", "/workspace/none", "to", "/workspace/x"}, 404, "not_found"},
		{"POST", "files/move", []string{"from", "/workspace/file", "to", "/dev/shm/x"}, 409, "conflict"}, // another mount
		{"POST", "files/move", []string{"from", "/workspace/full", "to", "/workspace/full/x/y"}, 422, "invalid"},
		{"POST", "files/move", []string{"from", "/workspace/file"}, 422, "invalid"},
		{"DELETE", "files", []string{"path", "/workspace/full"}, 409, "conflict"},
		{"DELETE", "files", []string{"path", "/workspace/none"}, 404, "not_found"},
		{"DELETE", "files", []string{"path", "/workspace/none", "recursive", "true"}, 404, "not_found"},
		{"DELETE", "files", []string{"path", "/", "recursive", "true"}, 422, "invalid"},
		{"GET", "files/list", []string{"path", "/workspace/file"}, 409, "conflict"},
		{"GET", "files/list", []string{"path", "/workspace/file", "recursive", "true"}, 409, "conflict"},
		{"GET", "files/list", []string{"path", "/workspace/locked", "recursive", "true"}, 403, "forbidden"},
		{"GET", "files/list", []string{"path", "/workspace", "limit", "10001"}, 422, "invalid"},
		{"GET", "files/tar", []string{"path", "/workspace/file"}, 409, "conflict"},
		{"GET", "files/tar", []string{"path", "/none"}, 404, "not_found"},
		{"PUT", "files/tar", []string{"path", "/none"}, 404, "not_found"},
	} {
		t.Run(fmt.Sprintf("%s %s %.80q", c.method, c.operation, c.query), func(t *testing.T) {
			if p := b.send(t, c.method, c.operation, c.query...).Want(t, c.status); p.Code != c.code {
				t.Errorf("code %q, want %q: %s", p.Code, c.code, p.Detail)
			}
		})
	}
	if got := b.read(t, "/workspace/file"); got != "text" {
		t.Errorf("the file has %q", got)
	}
}

// Nothing of a sandbox can be reached by another tenant who knows its ID.
func testFilesOfOtherTenant(t *testing.T, s *servertest.Server) {
	own := newBox(t, s, alice, nil)
	own.write(t, "/workspace/secret", "text")
	thief := &box{Client: s.Client(t, bob), server: s, id: own.id}
	for _, c := range [][]string{
		{"GET", "files", "path", "/workspace/secret"},
		{"PUT", "files", "path", "/workspace/secret"},
		{"DELETE", "files", "path", "/workspace/secret"},
		{"GET", "files/stat", "path", "/workspace/secret"},
		{"GET", "files/list", "path", "/workspace"},
		{"POST", "files/folder", "path", "/workspace/x"},
		{"POST", "files/move", "from", "/workspace/secret", "to", "/workspace/x"},
		{"GET", "files/tar", "path", "/workspace"},
		{"PUT", "files/tar", "path", "/workspace"},
		{"GET", "listeners"},
		{"POST", "listeners/3000/wait"},
		{"GET", "ports/3000/"},
	} {
		if p := thief.send(t, c[0], c[1], c[2:]...).Want(t, http.StatusNotFound); p.Code != "not_found" || p.Detail != fmt.Sprintf("no sandbox %q", own.id) {
			t.Errorf("%v: problem %+v", c, p)
		}
	}
	servertest.Send(t, thief.Client, "POST", thief.path("snapshots"), map[string]string{"name": "stolen"}).Want(t, http.StatusNotFound)
	if got := own.read(t, "/workspace/secret"); got != "text" {
		t.Errorf("the file has %q", got)
	}
}

// Names that are not UTF-8 are bytes in queries, and have pathBytes in responses.
func testNamesThatAreNotText(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.run(t, `import fs from 'node:fs';
		fs.writeFileSync(Buffer.from('/workspace/\xff\xc3(', 'latin1'), 'one');
		fs.symlinkSync(Buffer.from('\xfe', 'latin1'), 'link')`)
	const name = "/workspace/\xff\xc3("
	list := b.list(t, "path", "/workspace")
	if len(list.Files) != 2 || list.Files[1].Path != "/workspace/�(" || string(list.Files[1].PathBytes) != name {
		t.Fatalf("the folder has %+v", list.Files)
	}
	if i := b.stat(t, "path", "/workspace/link", "links", "true"); string(i.TargetBytes) != "\xfe" || i.Target != "�" {
		t.Errorf("the link is %+v", i)
	}
	if got := b.read(t, name); got != "one" {
		t.Errorf("the file has %q", got)
	}
	b.write(t, name, "two")
	b.send(t, "POST", "files/move", "from", name, "to", "/workspace/\x80").Want(t, http.StatusNoContent)
	if got := b.run(t, `import fs from 'node:fs'; console.log(fs.readFileSync(Buffer.from('/workspace/\x80', 'latin1'), 'utf8'))`); got != "two\n" {
		t.Errorf("the guest reads %q", got)
	}
	b.send(t, "DELETE", "files", "path", "/workspace/\x80").Want(t, http.StatusNoContent)
}

func testUploadLimits(t *testing.T, s *servertest.Server) {
	const most = maxUpload
	b := newBox(t, s, uploader, map[string]any{"limits": map[string]any{"diskBytes": most / 2}})
	b.write(t, "/workspace/x", "old")
	zeros := func(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }
	check := func(what string, res *servertest.Response, status int, code string) {
		t.Helper()
		if p := res.Want(t, status); p.Code != code || code == "no_space" && !strings.Contains(p.Detail, "limits.diskBytes") {
			t.Errorf("%s: %+v", what, p)
		}
		if got := b.read(t, "/workspace/x"); got != "old" {
			t.Errorf("%s: the file has %.10q", what, got)
		}
		if got := paths(b.list(t, "path", "/workspace")); !slices.Equal(got, []string{"/workspace/x"}) {
			t.Errorf("%s: the folder has %v", what, got)
		}
	}
	check("a length above the limit", b.put(t, bytes.NewReader(make([]byte, most+1)), "files", "path", "/workspace/x"), 413, "too_large")
	b.send(t, "DELETE", "files", "path", "/workspace/none").Want(t, 404) // the connection still works
	check("a full disk", b.put(t, zeros(most), "files", "path", "/workspace/x"), 507, "no_space")
	r := b.request(t, "PUT", strings.NewReader("x"), "files", "path", "/workspace/x")
	r.Header.Set("Content-Encoding", "gzip")
	check("compressed", servertest.Do(t, b.Client, r), 415, "unsupported_media_type")
	big := newBox(t, s, uploader, nil)
	if p := big.put(t, zeros(most+1), "files", "path", "/workspace/x").Want(t, 413); p.Code != "too_large" {
		t.Errorf("more than the limit in chunks: %+v", p)
	}
	if got := big.list(t, "path", "/workspace"); len(got.Files) != 0 {
		t.Errorf("the upload left %+v", got.Files)
	}
	big.put(t, zeros(most), "files", "path", "/workspace/x").Want(t, 200)
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A client that goes in the middle of an upload leaves nothing.
func testUploadThatEndsEarly(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	u := url.URL{Scheme: "http", Host: "gaol", Path: "/v1/sandboxes/" + b.id + "/files", RawQuery: "path=/workspace/x"}
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", u.String(), reader)
		if err == nil {
			_, err = b.Do(r) //nolint:bodyclose // there is no response
		}
		done <- err
	}()
	if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	for len(b.list(t, "path", "/workspace").Files) == 0 { // the temporary file
		time.Sleep(time.Millisecond)
	}
	_ = writer.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-done; err == nil {
		t.Error("there was a response")
	}
	for len(b.list(t, "path", "/workspace").Files) > 0 {
		time.Sleep(time.Millisecond)
	}
}
