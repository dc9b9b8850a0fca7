package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// A guest can set any time, which JSON and HTTP do not have.
func testTimesBeyondText(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.run(t, `import fs from 'node:fs';
		fs.writeFileSync('late', ''); fs.utimesSync('late', 2 ** 53, 2 ** 53);
		fs.writeFileSync('early', ''); fs.utimesSync('early', new Date(-8.64e15), new Date(-8.64e15))`)
	list := b.list(t, "path", "/workspace")
	if early, late := list.Files[0].Modified.Year(), list.Files[1].Modified.Year(); early > 1970 || late < 2100 {
		t.Errorf("years %d and %d", early, late)
	}
	for _, name := range []string{"early", "late"} {
		if got := b.read(t, "/workspace/"+name); got != "" {
			t.Errorf("%s has %q", name, got)
		}
	}
}

// A listing is bounded whatever a guest makes.
func testListingOfManyFiles(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.run(t, `import fs from 'node:fs';
		const name = 'x'.repeat(200);
		for (let i = 0; i < 11000; i++) fs.writeFileSync('/tmp/' + i + name, '');
		let dir = '/workspace'; for (let i = 0; i < 300; i++) { dir += '/d'; fs.mkdirSync(dir); }`)
	list := b.list(t, "path", "/tmp", "limit", "10000")
	if len(list.Files) != 10000 || !list.Truncated {
		t.Errorf("%d files, truncated %t", len(list.Files), list.Truncated)
	}
	if list := b.list(t, "path", "/workspace", "recursive", "true"); len(list.Files) < 250 || !list.Truncated {
		t.Errorf("%d nested folders, truncated %t", len(list.Files), list.Truncated)
	}
}

// hostFile makes a file on the host that all users may read.
func hostFile(t testing.TB, text string) (path string) {
	t.Helper()
	path = filepath.Join(servertest.PublicDir(t), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Links lead where they lead the guest.
func testLinksStayInside(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	host := hostFile(t, "of the host")
	want := b.run(t, fmt.Sprintf(`import fs from 'node:fs';
		fs.symlinkSync('/etc/passwd', 'file'); fs.symlinkSync('../../../../../../../etc', 'folder');
		fs.symlinkSync(%[1]q, 'host'); fs.symlinkSync('../../../../../../..' + %[1]q, 'up'); fs.symlinkSync('/proc/1/root' + %[1]q, 'magic');
		process.stdout.write(fs.readFileSync('/etc/passwd', 'utf8'))`, host))
	for _, path := range []string{"/workspace/file", "/workspace/folder/passwd"} {
		if got := b.read(t, path); got != want {
			t.Errorf("%s: %q, want the guest's %q", path, got, want)
		}
	}
	for _, name := range []string{"host", "up", "magic"} {
		if res := b.send(t, "GET", "files", "path", "/workspace/"+name); res.Status < 400 || strings.Contains(string(res.Body), "of the host") {
			t.Errorf("link %s: %d %q", name, res.Status, res.Body)
		}
		if res := b.put(t, strings.NewReader("x"), "files", "path", "/workspace/"+name); res.Status < 400 {
			t.Errorf("writing to link %s: %d %q", name, res.Status, res.Body)
		}
	}
	b.put(t, strings.NewReader("x"), "files", "path", "/workspace/folder/passwd").Want(t, http.StatusForbidden)
	if text, err := os.ReadFile(host); err != nil || string(text) != "of the host" {
		t.Errorf("the file of the host: %q, %v", text, err)
	}
}

// A guest replaces a file by a link, a FIFO and a folder, and changes its length, while the API
// reads and writes it. No request hangs or fails in another way than with a problem.
func testFilesWhileGuestRacesServer(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	host := hostFile(t, "of the host")
	b.run(t, `import { execFileSync } from 'node:child_process'; execFileSync('mkfifo', ['fifo'])`)
	b.start(t, 3000, fmt.Sprintf(`import fs from 'node:fs'; import net from 'node:net';
		net.createServer().listen(3000, '127.0.0.1');
		const swap = n => { try { fs.rmSync('x', { recursive: true, force: true }); } catch {} try {
			if (n === 0) fs.linkSync('fifo', 'x');
			if (n === 1) fs.symlinkSync('fifo', 'x');
			if (n === 2) fs.symlinkSync(%q, 'x');
			if (n === 3) fs.mkdirSync('x/y', { recursive: true });
			if (n === 4) { fs.writeFileSync('x', ''); fs.truncateSync('x', 1 << 25); fs.truncateSync('x', 1); }
		} catch {} };
		let n = 0; (function loop() { for (let i = 0; i < 50; i++) swap(n++ %% 5); setImmediate(loop); })();`, host))
	for i := range harness.Fewer(3000, 150) {
		for _, c := range [][]string{
			{"GET", "files"}, {"PUT", "files"}, {"GET", "files/stat"}, {"GET", "files/list"}, {"DELETE", "files"}, {"POST", "files/folder"},
		} {
			r := b.request(t, c[0], nil, c[1], "path", "/workspace/x")
			if c[0] == "PUT" {
				r = b.request(t, c[0], strings.NewReader(fmt.Sprint("text ", i)), c[1], "path", "/workspace/x")
			}
			res, err := b.Do(r)
			if err != nil {
				t.Fatalf("%v: %v", c, err)
			}
			body := make([]byte, 16)
			n, _ := res.Body.Read(body) // the rest may be missing: the file has become shorter
			_ = res.Body.Close()
			if res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests {
				t.Fatalf("%v: %s %s", c, res.Status, body[:n])
			}
			if strings.Contains(string(body[:n]), "of the host") {
				t.Fatal("the server read a file of the host")
			}
		}
	}
	if text, err := os.ReadFile(host); err != nil || string(text) != "of the host" {
		t.Errorf("the file of the host: %q, %v", text, err)
	}
}

// A file that grows without end is served with its length at the time of opening.
func testEndlessFile(t *testing.T, s *servertest.Server) {
	b := newBox(t, s, alice, nil)
	b.start(t, 3000, `import fs from 'node:fs'; import net from 'node:net';
		fs.writeFileSync('log', 'start');
		net.createServer().listen(3000, '127.0.0.1');
		(function grow() { try { fs.appendFileSync('log', 'x'.repeat(1000)); } catch { fs.truncateSync('log', 5); } setImmediate(grow); })();`)
	for range harness.Fewer(200, 20) {
		res, err := b.Do(b.request(t, "GET", nil, "files", "path", "/workspace/log"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := res.Body.Read(make([]byte, 5))
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || n == 0 {
			t.Fatalf("%s, %d bytes, %v", res.Status, n, err)
		}
	}
	servertest.Send(t, b.Client, "GET", b.path("files/tar", "path", "/workspace"), nil).Want(t, http.StatusOK)
}
