package tools

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
)

// No path leads out of the guest's tree, whatever links the guest has made.
func TestToolsHostilePaths(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("host's"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := newTools(t, sandboxtools.Options{})
	s.call("init", args{"containerId": "a"})
	passwd := s.run("cat", "/etc/passwd")
	s.run("sh", "-c", `ln -s /etc/passwd passwd; ln -s `+canary+` canary; ln -s / root; ln -s ../../../../../../etc up; ln -s loop loop; mkfifo fifo; ln -s /proc/self/root magic; ln -s /proc/1/cwd cwd; mkdir locked; touch locked/in; chmod 0 locked; mkdir -p d; touch d/a`)
	for _, path := range []string{"passwd", "root/etc/passwd", "up/passwd", "../etc/passwd", "/../../../etc/passwd", "/workspace/./d/../passwd", "../../../../../../../../etc/passwd"} {
		if r := s.call("read_file", args{"containerId": "a", "path": path}); r["content"] != passwd {
			t.Errorf("%s is not the guest's own", path)
		}
	}
	for _, tc := range []struct {
		path string
		want sandboxtools.Code
	}{
		{"canary", sandboxtools.NotFound},
		{canary, sandboxtools.NotFound},
		{"/proc/1/environ", sandboxtools.Permission},
		{"/proc/self/root" + canary, sandboxtools.NotFound}, // the guest's /proc shows no process of the host
		{"magic" + canary, sandboxtools.NotFound},
		{"/proc/1/root" + canary, sandboxtools.InvalidArgument}, // ELOOP: no magic link is followed
		{"cwd" + canary, sandboxtools.InvalidArgument},
		{"loop", sandboxtools.InvalidArgument},
		{"fifo", sandboxtools.InvalidArgument},
		{"/dev/zero", sandboxtools.InvalidArgument},
		{"locked/in", sandboxtools.Permission},
		{"d", sandboxtools.IsDirectory},
		{"d/a/b", sandboxtools.NotDirectory},
		{"d/" + strings.Repeat("n", 256), sandboxtools.InvalidArgument},
		{strings.Repeat("n/", 2045), sandboxtools.InvalidArgument},
	} {
		if harness.InGVisor() && strings.HasSuffix(tc.path, canary) && tc.want == sandboxtools.InvalidArgument {
			tc.want = sandboxtools.Permission // it checks rights to a process before the kind of link
		}
		result, err := s.try("read_file", args{"containerId": "a", "path": tc.path})
		if got := sandboxtools.CodeOf(err); got != tc.want {
			t.Errorf("%.40s: %q, want %q: %.300v %.40v", tc.path, got, tc.want, err, result)
		}
	}
	for _, path := range []string{"/etc/passwd", "passwd", "/usr/local/bin/node", "root/etc/new", "/proc/1/mem", "/new"} {
		s.refused(sandboxtools.Permission, "write_file", args{"containerId": "a", "path": path, "content": "x"})
	}
	for _, path := range []string{"/proc", "/etc", "/usr/local/bin/node", "/tmp"} {
		result, err := s.try("delete", args{"containerId": "a", "path": path, "recursive": true, "force": true})
		if err == nil && result["deleted"] == true {
			t.Errorf("%s is gone", path)
		}
	}
	s.refused(sandboxtools.InvalidArgument, "delete", args{"containerId": "a", "path": "/", "recursive": true})
	s.refused(sandboxtools.NotDirectory, "list_directory", args{"containerId": "a", "path": "d/a"})
	r := s.call("list_directory", args{"containerId": "a", "path": "/", "recursive": true})
	for _, e := range r["entries"].([]any) {
		if p := e.(map[string]any)["path"].(string); strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/workspace/root/") {
			t.Fatalf("%s is listed", p)
		}
	}
	if s.run("node", "-p", "1 + 1") != "2\n" {
		t.Error("the sandbox is broken")
	}
	if text, err := os.ReadFile(canary); string(text) != "host's" || err != nil {
		t.Errorf("the host's file has %q, %v", text, err)
	}
}

// Files keep their bytes, and the result reports if they are not text.
func TestToolsFiles(t *testing.T) {
	limits := runtime.Limits{Disk: 30 << 20}
	if harness.Needs(t, runtime.FeatureFiles) {
		limits.Files = 40_000
	}
	s := newTools(t, sandboxtools.Options{Create: runtime.Options{Limits: limits}})
	s.call("init", args{"containerId": "a"})
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	encoded := base64.StdEncoding.EncodeToString(binary)
	if r := s.call("write_file", args{"containerId": "a", "path": "b", "content": encoded, "encoding": "base64"}); r["size"] != 256.0 {
		t.Error(r)
	}
	for _, encoding := range []string{"utf8", "base64"} {
		if r := s.call("read_file", args{"containerId": "a", "path": "b", "encoding": encoding}); r["content"] != encoded || r["encoding"] != "base64" {
			t.Error(r)
		}
	}
	if out := s.run("node", "-p", `fs.readFileSync('b').every((v, i) => v === i)`); out != "true\n" {
		t.Error(out)
	}
	s.refused(sandboxtools.InvalidArgument, "write_file", args{"containerId": "a", "path": "c", "content": "no base64", "encoding": "base64"})

	big := strings.Repeat("0123456789abcdef", 1<<20) // 16 MiB, the most
	s.call("write_file", args{"containerId": "a", "path": "big", "content": big})
	if r := s.call("read_file", args{"containerId": "a", "path": "big"}); r["content"] != big || r["size"] != 16777216.0 {
		t.Error("a big file is not what was written")
	}
	s.refused(sandboxtools.Limit, "write_file", args{"containerId": "a", "path": "big", "content": big + "x"})
	s.run("sh", "-c", "printf x >>big; truncate -s 100G sparse || true; mkdir many; cd many; seq 10100 | xargs touch")
	s.refused(sandboxtools.Limit, "read_file", args{"containerId": "a", "path": "big"})
	s.refused(sandboxtools.NoSpace, "write_file", args{"containerId": "a", "path": "full", "content": big})
	if r := s.call("exists", args{"containerId": "a", "path": "full"}); r["exists"] != false {
		t.Error("a file that did not fit exists")
	}
	many := s.call("list_directory", args{"containerId": "a", "path": "many"})
	if n := len(many["entries"].([]any)); n != 10_000 || many["truncated"] != true {
		t.Error(n, many["truncated"])
	}

	s.refused(sandboxtools.NotFound, "create_directory", args{"containerId": "a", "path": "x/y/z"})
	s.call("create_directory", args{"containerId": "a", "path": "x/y/z", "recursive": true})
	s.call("create_directory", args{"containerId": "a", "path": "x/y/z", "recursive": true})
	s.refused(sandboxtools.Exists, "create_directory", args{"containerId": "a", "path": "x/y/z"})
	s.refused(sandboxtools.NotFound, "delete", args{"containerId": "a", "path": "none", "recursive": true})
	if r := s.call("delete", args{"containerId": "a", "path": "none", "force": true}); r["deleted"] != false {
		t.Error(r)
	}

	s.run("node", "-e", `fs.writeFileSync('f', '123', { mode: 0o640 }); fs.symlinkSync('f', 'l'); fs.utimesSync('f', 1e9, 1e12)`)
	info := s.call("file_info", args{"containerId": "a", "path": "f"})
	created, err := time.Parse(time.RFC3339Nano, fmt.Sprint(info["createdAt"]))
	if err != nil || time.Since(created) > time.Minute {
		t.Error(created, err)
	}
	delete(info, "createdAt")
	last := "9999-12-31T23:59:59Z"
	if harness.InGVisor() {
		last = "2262-04-11T23:47:16.854775807Z" // in nanoseconds
	}
	if diff := gocmp.Diff(map[string]any{
		"path": "/workspace/f", "name": "f", "type": "file", "size": 3.0, "permissions": "0640", "owner": 1000.0, "group": 1000.0,
		"accessedAt": "2001-09-09T01:46:40Z", "modifiedAt": last,
	}, info); diff != "" {
		t.Error(diff)
	}
	if r := s.call("file_info", args{"containerId": "a", "path": "l"}); r["type"] != "symlink" {
		t.Error(r)
	}
	s.run("node", "-e", `fs.mkdirSync('names'); fs.writeFileSync(Buffer.from('names/\xff', 'latin1'), ''); fs.writeFileSync('names/\n', '')`)
	r := s.call("list_directory", args{"containerId": "a", "path": "names"})
	if e := r["entries"].([]any); len(e) != 2 || e[0].(map[string]any)["name"] != "\n" || e[1].(map[string]any)["name"] != "\ufffd" {
		t.Error(r)
	}
}
