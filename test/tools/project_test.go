package tools

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// roundPackage is an npm package, as a registry serves it.
func roundPackage(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	w := tar.NewWriter(zip)
	for _, f := range []struct{ name, text string }{
		{"package/package.json", `{"name":"round","version":"1.2.0","type":"module","exports":"./index.js"}`},
		{"package/index.js", "export default (n, digits) => Math.round(n * 10 ** digits) / 10 ** digits;\n"},
	} {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}), writeText(w, f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func writeText(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// project is an archive of testdata/project, with its package and the lock file.
func project(t *testing.T) []byte {
	t.Helper()
	pkg := roundPackage(t)
	sum := sha512.Sum512(pkg)
	lock := fmt.Sprintf(`{"name":"shapes","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{
		"":{"name":"shapes","version":"1.0.0","dependencies":{"round":"file:packages/round-1.2.0.tgz"}},
		"node_modules/round":{"version":"1.2.0","resolved":"file:packages/round-1.2.0.tgz","integrity":"sha512-%s"}}}`, base64.StdEncoding.EncodeToString(sum[:]))
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, text []byte) error {
		return errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}), writeText(w, string(text)))
	}
	root := os.DirFS("testdata/project")
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		return errors.Join(err, add(name, text))
	})
	if err = errors.Join(err, add("packages/round-1.2.0.tgz", pkg), add("package-lock.json", []byte(lock)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// projectSteps are the commands that build an unpacked project, and their output.
var projectSteps = []struct{ command, mentions string }{
	{"npm ci --offline --no-audit --no-fund", "added 1 package"},
	{"npm run build", "built main.js shapes.js"},
	{"npm test", "pass 1"},
	{"node dist/main.js", "circle 3.14\ncircle 12.57\ncircle 28.27\n"},
}

var projectLimits = runtime.Limits{Memory: 512 << 20}

// checkBuilt reads an archive of the files of a project's build.
func checkBuilt(t *testing.T, archive io.Reader) {
	t.Helper()
	var names []string
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "main.js") || !strings.Contains(got, "shapes.js") {
		t.Errorf("the archive has %s", got)
	}
}

// A project is unpacked, installed, built and tested in one runtime, and the result is read
// back, all through the SDK.
func TestProject(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: projectLimits})
	if _, err := rt.FS().Untar(bytes.NewReader(project(t)), "/workspace", hostfs.UntarOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, step := range projectSteps {
		args := strings.Fields(step.command)
		res, err := rt.Command(t.Context(), args[0], args[1:], runtime.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if res.ExitCode != 0 || !strings.Contains(string(res.Stdout), step.mentions) {
			t.Fatalf("%s: %d %q %s %s", step.command, res.ExitCode, res.Cause, res.Stdout, res.Stderr)
		}
	}
	var out bytes.Buffer
	if _, err := rt.FS().Tar(&out, "/workspace/dist", hostfs.TarOptions{}); err != nil {
		t.Fatal(err)
	}
	checkBuilt(t, &out)
	// The installation becomes a snapshot that other runtimes start from.
	s := harness.TakeSnapshot(t, rt, runtime.SnapshotOptions{})
	other := harness.Create(t, runtime.Options{Snapshot: s.ID})
	res, err := other.Command(t.Context(), "node", []string{"dist/main.js"}, runtime.RunOptions{})
	if err != nil || !strings.HasPrefix(string(res.Stdout), "circle 3.14\n") {
		t.Errorf("from the snapshot: %+v, %v", res, err)
	}
	third := harness.Create(t, runtime.Options{NodeModules: "snapshot:" + s.ID, Cwd: "/srv"})
	res = harness.Run(t, third, `import round from 'round'; import fs from 'node:fs'; try { fs.unlinkSync('node_modules/round/index.js') } catch (e) { console.log(round(1.234, 1), e.code, fs.readdirSync('.').join()) }`, runtime.RunOptions{})
	if string(res.Stdout) != "1.2 EROFS node_modules\n" {
		t.Errorf("its packages alone: %q %q", res.Stdout, res.Stderr)
	}
}

// The same through the sandbox tools. The result is read back twice: as an archive, and as
// files of the shared folder.
func TestProjectThroughTools(t *testing.T) {
	base := t.TempDir()
	s := newTools(t, sandboxtools.Options{ProjectBase: base, Create: runtime.Options{Limits: projectLimits}})
	s.call("init", args{"containerId": "a", "projectOutPath": "shapes"})
	s.call("write_file", args{"containerId": "a", "path": "project.tar", "content": base64.StdEncoding.EncodeToString(project(t)), "encoding": "base64"})
	s.run("tar", "-xf", "project.tar")
	s.call("delete", args{"containerId": "a", "path": "project.tar"})
	for _, step := range projectSteps {
		list := strings.Fields(step.command)
		if out := s.run(list[0], list[1:]...); !strings.Contains(out, step.mentions) {
			t.Fatalf("%s: %s", step.command, out)
		}
	}
	var names []string
	for _, e := range s.call("list_directory", args{"containerId": "a", "path": "dist"})["entries"].([]any) {
		names = append(names, e.(map[string]any)["name"].(string))
	}
	if got := strings.Join(names, " "); got != "main.js shapes.js" {
		t.Errorf("dist has %s", got)
	}
	for _, name := range append(names, "../node_modules/round/index.js") {
		text, err := os.ReadFile(filepath.Join(base, "shapes/dist", name))
		if err != nil {
			t.Fatal(err)
		}
		if r := s.call("read_file", args{"containerId": "a", "path": "dist/" + name}); len(text) == 0 || r["content"] != string(text) {
			t.Errorf("%s is %v, and on the host %q", name, r, text)
		}
	}
	s.run("tar", "-cf", "/tmp/dist.tar", "dist")
	r := s.call("read_file", args{"containerId": "a", "path": "/tmp/dist.tar", "encoding": "base64"})
	checkBuilt(t, base64.NewDecoder(base64.StdEncoding, strings.NewReader(r["content"].(string))))
	s.call("destroy", args{"containerId": "a"})
	if left, err := fs.Glob(os.DirFS(base), "shapes/dist/*.js"); err != nil || len(left) != 2 {
		t.Errorf("after its end the host has %v, %v", left, err)
	}
}

// A sandbox with a project can use packages of the host.
func TestToolsProjectWithPackages(t *testing.T) {
	base := t.TempDir()
	packages := harness.HostTree(t, map[string]string{"p/index.js": `module.exports = 'package'`})
	s := newTools(t, sandboxtools.Options{ProjectBase: base, Create: runtime.Options{NodeModules: packages}})
	for _, id := range []string{"a", "b"} { // the second one finds the empty folder of the first
		s.call("init", args{"containerId": id, "projectOutPath": "p"})
		r := s.call("command", args{"containerId": id, "executable": "node", "args": []string{"-p", "require('p')"}, "workingDirectory": "/workspace"})
		if r["stdout"] != "package\n" {
			t.Errorf("%s: %v", id, r)
		}
		s.call("destroy", args{"containerId": id})
	}
	if entries, err := os.ReadDir(filepath.Join(base, "p/node_modules")); err != nil || len(entries) != 0 {
		t.Errorf("the project has %v, %v", entries, err)
	}
}
