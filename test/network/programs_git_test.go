package network

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// pushing clones a repository, adds a commit and pushes it. The pack is sent in chunks,
// because it is longer than git's buffer.
const pushing = `
set -e
git -c protocol.version=2 clone --quiet "$1" "$2"
cd "$2"
git fsck
git log --format='%s' origin/main
head -c 2000000 /dev/urandom > "$2.bin"
git add .
git -c user.name=guest -c user.email=guest@example.com commit --quiet -m "$2"
git -c http.postBuffer=65536 push --quiet origin main
git rev-parse HEAD
`

// git clones from and pushes to a server, over HTTPS and by HTTP.
func TestGit(t *testing.T) {
	ca := newInternet(t)
	work, bare := newRepository(t)
	serve(t, ca, &http.Server{Handler: newGitServer(t, filepath.Dir(bare))})
	perLauncher(t, func(t *testing.T, l runtime.Launcher) {
		dir := t.TempDir()
		rt := harness.CreateExact(t, options(ca, l, runtime.Mount{Source: dir, Target: "/workspace", Access: runtime.ReadWrite}))
		for _, scheme := range []string{"https", "http"} {
			before := git(t, bare, "log", "--format=%s", "main")
			out := command(t, rt, map[string]string{"GIT_SSL_CAINFO": caFile}, "sh", "-c", pushing, "sh", scheme+"://"+host+"/"+filepath.Base(bare), scheme)
			head := git(t, bare, "rev-parse", "main")
			if want := before + "\n" + head; out != want {
				t.Errorf("%s: got %q, want %q", scheme, out, want)
			}
			git(t, bare, "fsck", "--strict")
		}
		files := readTree(t, filepath.Join(dir, "https"))
		for path, want := range readTree(t, work) {
			if !strings.HasPrefix(path, ".") && files[path] != want {
				t.Errorf("%s: %s", path, cmp.Diff(want, files[path]))
			}
		}
	})
}

// Without the authority's certificate, and from a host that no rule allows, nothing is cloned.
func TestGitRefused(t *testing.T) {
	ca := newInternet(t)
	_, bare := newRepository(t)
	serve(t, ca, &http.Server{Handler: newGitServer(t, filepath.Dir(bare))})
	perLauncher(t, func(t *testing.T, l runtime.Launcher) {
		rt := harness.CreateExact(t, options(ca, l))
		for url, want := range map[string]string{"https://" + host: "certificate", "http://other.test": "Could not resolve host"} {
			res, err := rt.Command(t.Context(), "git", []string{"clone", url + "/" + filepath.Base(bare)}, runtime.RunOptions{Timeout: -1})
			if err != nil {
				t.Fatal(err)
			}
			if res.ExitCode == 0 || !strings.Contains(string(res.Stderr), want) {
				t.Errorf("%s: exit code %d, stderr %s", url, res.ExitCode, res.Stderr)
			}
		}
	})
}

// newRepository makes a repository with three commits, and a bare one that serves it.
func newRepository(t *testing.T) (work, bare string) {
	t.Helper()
	work = t.TempDir()
	git(t, work, "init", "--quiet", "--initial-branch=main")
	for n := range 3 {
		for i := range 30 {
			dir := filepath.Join(work, fmt.Sprintf("d%d", i%7))
			text := strings.Repeat(fmt.Sprintf("file %d, version %d\n", i, n), 1000)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git(t, work, "add", ".")
		git(t, work, "commit", "--quiet", "-m", fmt.Sprint("commit ", n))
	}
	bare = filepath.Join(t.TempDir(), "repository.git")
	git(t, work, "clone", "--quiet", "--bare", ".", bare)
	git(t, bare, "config", "http.receivepack", "true")
	return work, bare
}

// git runs git on the host, without the configuration of its users.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=host", "GIT_AUTHOR_EMAIL=host@example.com", "GIT_COMMITTER_NAME=host", "GIT_COMMITTER_EMAIL=host@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// newGitServer serves the repositories in a folder.
func newGitServer(t *testing.T, dir string) http.Handler {
	t.Helper()
	handler := &cgi.Handler{
		Path: filepath.Join(git(t, dir, "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "REMOTE_USER=guest"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // CGI needs its length
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		handler.ServeHTTP(w, r)
	})
}
