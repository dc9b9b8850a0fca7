package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "gaol"

// layers are the layers of the top-level folders. A package imports packages of lower
// layers or of its own. In layers 0 and 3, it imports no other folder of its own layer, except
// that tests import the packages of commands.
var layers = map[string]int{
	"cmd": 3, "examples": 3, "test": 3,
	"runtime": 2,
	"rootfs":  1, "internal": 1,
	"policy": 0, "vfs": 0, "jail": 0,
}

// otherFolders are the other folders that may exist at the top.
var otherFolders = []string{".ci", ".git", "bin", "deploy", "docs"}

// forbidden lists packages that no file imports, with the reason.
var forbidden = map[string]string{
	"github.com/stretchr/testify":    "testing, go-cmp and testscript say what failed without a second language",
	"github.com/pkg/errors":          "fmt.Errorf with %w and errors.AsType",
	"io/ioutil":                      "deprecated: io and os have it all",
	"github.com/opencontainers/runc": "it executes the host's program again for each process, which takes 10 ms: package jail creates and enters jails itself",
	"plugin":                         "it would load code into the process that holds the jails",
}

// unlinked lists what programs do not link, by the package whose dependencies are checked, and a tag of its build, with the reason.
var unlinked = map[string]map[string]string{
	module + "/runtime": {
		"github.com/docker/cli":                                "only imports from registries need it: rootfs/registry",
		"github.com/google/go-containerregistry/pkg/authn":     "only imports from registries need it: rootfs/registry",
		"github.com/google/go-containerregistry/pkg/v1/remote": "only imports from registries need it: rootfs/registry",
		"github.com/spf13":                                     "the SDK has no command line",
		"go.opentelemetry.io":                                  "only the server is observed",
		"github.com/prometheus":                                "only the server is observed",
	},
	module + "/cmd/gaol": {
		"google.golang.org/grpc":          "traces are sent by HTTP",
		"github.com/felixge/httpsnoop":    "it takes 2 seconds to compile, and a wrapper with Unwrap a dozen lines",
		"github.com/russross/blackfriday": "manual pages are written without Markdown",
		"github.com/schollz/progressbar":  "it takes a dozen lines",
	},
	module + "/cmd/gaol noserver": {
		module + "/cmd/gaol/server": "gaol-server has it",
		module + "/rootfs/registry": "gaol-server has it",
	},
}

// maxLinked bounds how many packages a program links, of which Go's own are some 230. Each takes a part of the time to build
// gaol and to start it.
var maxLinked = map[string]int{module + "/runtime": 395, module + "/cmd/gaol": 599, module + "/cmd/gaol noserver": 419}

// emptyNames are names of packages and files that do not describe their content.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "lib"}

// pkg is a package as go list prints it.
type pkg struct {
	ImportPath, Name, Dir              string
	GoFiles, CgoFiles                  []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
}

// imports includes those of its tests, because a test that imports a higher layer couples
// the layers just as well.
func (p pkg) imports() []string {
	return slices.Concat(p.Imports, p.TestImports, p.XTestImports)
}

func (p pkg) files() []string {
	return slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles)
}

// packages lists the packages of this repository.
func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var listPackages = sync.OnceValues(func() (list []pkg, err error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir, cmd.Stderr = "..", &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		}
		list = append(list, p)
	}
})

// folder returns the top-level folder of a package of this repository.
func folder(importPath string) (string, bool) {
	rest, ours := strings.CutPrefix(importPath, module+"/")
	top, _, _ := strings.Cut(rest, "/")
	return top, ours
}

// mayImport reports whether packages of one folder may import packages of another.
func mayImport(from, to string) bool {
	if from == "test" && to == "cmd" {
		return true
	}
	if layers[from] == 0 || layers[from] == 3 {
		return layers[to] < layers[from] || from == to
	}
	return layers[to] <= layers[from]
}

func TestMayImport(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{"cmd", "runtime", true},
		{"runtime", "policy", true},
		{"rootfs", "internal", true},
		{"jail", "jail", true},
		{"runtime", "cmd", false},
		{"internal", "runtime", false},
		{"jail", "vfs", false},
		{"policy", "jail", false},
		{"cmd", "test", false},
		{"test", "cmd", true},
	} {
		if got := mayImport(tc.from, tc.to); got != tc.want {
			t.Errorf("mayImport(%s, %s) = %v, want %v", tc.from, tc.to, got, tc.want)
		}
	}
}

// leaves are packages of higher layers that all packages may import: their subject is none of gaol's, and they import
// only each other.
var leaves = []string{module + "/internal/strictjson", module + "/internal/lazyregexp", module + "/internal/kernfile"}

// forTests are packages that tests of all layers may import. They import nothing of this repository.
var forTests = []string{module + "/test/internettest", module + "/test/tartest", module + "/test/tier"}

func TestImportsGoDown(t *testing.T) {
	for _, p := range packages(t) {
		from, _ := folder(p.ImportPath)
		if _, known := layers[from]; !known {
			t.Errorf("%s is in no layer", p.ImportPath)
		}
		for _, path := range p.imports() {
			to, ours := folder(path)
			switch {
			case ours && slices.Contains(forTests, p.ImportPath):
				t.Errorf("%s, which tests of all layers import, imports %s", p.ImportPath, path)
			case slices.Contains(forTests, path) && !slices.Contains(p.Imports, path):
			case slices.Contains(leaves, path):
			case ours && slices.Contains(leaves, p.ImportPath):
				t.Errorf("%s, which all packages import, imports %s", p.ImportPath, path)
			case ours && !mayImport(from, to):
				t.Errorf("%s imports %s: layer %d may not import %s, of layer %d", p.ImportPath, path, layers[from], to, layers[to])
			}
		}
	}
}

// sandboxPackage is the interface of runtimes to sandboxes. nativePackage implements it in this kernel, and remotePackage by an agent.
const (
	sandboxPackage = module + "/runtime/internal/sandbox"
	nativePackage  = sandboxPackage + "/native"
	remotePackage  = sandboxPackage + "/remote"
	agentPackage   = module + "/runtime/internal/agent"
	programPackage = module + "/runtime/internal/wall/program"
)

// isIn reports whether a package is another one, or below it.
func isIn(importPath, above string) bool {
	return importPath == above || strings.HasPrefix(importPath, above+"/")
}

// workPackage links what it runs in confined processes. These packages import nothing else of runtime.
const workPackage = module + "/runtime/internal/work"

var workImports = []string{module + "/runtime/snippets/bundle", module + "/runtime/snippets/lint"}

// internalImports lists the internal packages of runtime that depend on others: an agent needs both of its sides.
var internalImports = map[string][]string{
	agentPackage:                             {module + "/runtime/internal/stdio"},
	remotePackage:                            {agentPackage},
	module + "/runtime/internal/wall/child":  {remotePackage},
	module + "/runtime/internal/wall/gvisor": {remotePackage, programPackage},
	module + "/runtime/internal/wall/vm":     {remotePackage, programPackage},
}

// TestInternalOfRuntime: the other internal packages of runtime do not depend on each other, except for the interface of sandboxes.
func TestInternalOfRuntime(t *testing.T) {
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath, module+"/runtime/internal/") && !slices.Contains(workImports, p.ImportPath) {
			continue
		}
		for _, path := range p.imports() {
			allowed := path == sandboxPackage || slices.Contains(internalImports[p.ImportPath], path) ||
				(p.ImportPath == workPackage || slices.Contains(workImports, p.ImportPath)) && slices.Contains(workImports, path)
			if isIn(path, module+"/runtime") && !allowed {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// jailImports lists which packages of runtime import package jail, or one below it, although they
// do not make sandboxes by it.
var jailImports = map[string]map[string]string{
	sandboxPackage: {
		module + "/jail":                "values that describe resources and ends of processes, and errors",
		module + "/jail/cgroup":         "limits and usage, which are numbers",
		module + "/jail/hostcommand":    "the names of commands",
		module + "/jail/kernel":         "the names of features of kernels",
		module + "/jail/landlock/audit": "the error of a missing audit log",
		module + "/jail/mounts":         "values that describe files and owners",
	},
	agentPackage: {
		module + "/jail": "errors that cross the connection",
	},
	remotePackage: {
		module + "/jail/gateway": "it repeats the guest's connections",
		module + "/jail/kernel":  "the factor of time limits",
	},
	module + "/runtime/internal/wall/gvisor": {
		module + "/jail":        "the identity of a process outside of jails, and the first ids of a jail",
		module + "/jail/cgroup": "the limits of gVisor on the host",
		module + "/jail/kernel": "what gVisor lacks, and the variable for slow machines",
		module + "/jail/mounts": "the mounts that gVisor sees",
	},
	module + "/runtime/internal/wall/vm": {
		module + "/jail":        "the identity of a process outside of jails",
		module + "/jail/cgroup": "the limits of QEMU on the host",
		module + "/jail/kernel": "the factor of time limits",
		module + "/jail/mounts": "it leaves a chroot before it mounts",
	},
	programPackage: {
		module + "/jail/cgroup": "the group of a program outside of jails",
		module + "/jail/enter":  "the errors of starts",
	},
	module + "/runtime/internal/work": {
		module + "/jail/subprocess": "confines processes of this program, whatever confines its sandboxes",
		module + "/jail/cgroup":     "the limits of such processes",
	},
	module + "/runtime/sandboxtools": {
		module + "/jail":        "the error of a start, which all sandboxes return",
		module + "/jail/mounts": "it opens folders of the host without following links",
	},
}

// Few packages depend on how a jail confines processes.
func TestImportsOfJail(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		if !isIn(p.ImportPath, module+"/runtime") || p.ImportPath == nativePackage {
			continue
		}
		for _, path := range p.imports() {
			if _, allowed := jailImports[p.ImportPath][path]; isIn(path, module+"/jail") && !allowed {
				t.Errorf("%s imports %s: only %s does", p.ImportPath, path, nativePackage)
			}
			used[p.ImportPath+" "+path] = true
		}
	}
	for from, list := range jailImports {
		for path := range list {
			if !used[from+" "+path] {
				t.Errorf("%s does not import %s any more", from, path)
			}
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, path := range p.imports() {
			for bad, reason := range forbidden {
				if path == bad || strings.HasPrefix(path, bad+"/") {
					t.Errorf("%s imports %s: %s", p.ImportPath, path, reason)
				}
			}
		}
	}
}

func TestLinkedPackages(t *testing.T) {
	for program, bad := range unlinked {
		path, tag, _ := strings.Cut(program, " ")
		cmd := exec.Command("go", "list", "-tags="+tag, "-deps", path)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		if n := len(linked); n > maxLinked[program] {
			t.Errorf("%s links %d packages, at most %d", program, n, maxLinked[program])
		}
		for _, path := range linked {
			for above, reason := range bad {
				if isIn(path, above) {
					t.Errorf("%s links %s: %s", program, path, reason)
				}
			}
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(emptyNames, p.Name) || slices.Contains(emptyNames, path.Base(p.ImportPath)) {
			t.Errorf("%s: the name does not say what it contains", p.ImportPath)
		}
		for _, f := range p.files() {
			if slices.Contains(emptyNames, strings.TrimSuffix(strings.TrimSuffix(f, ".go"), "_test")) {
				t.Errorf("%s/%s: the name does not say what it contains", p.ImportPath, f)
			}
		}
	}
}

func TestTopLevelFolders(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		_, known := layers[e.Name()]
		if e.IsDir() && !known && !slices.Contains(otherFolders, e.Name()) {
			t.Errorf("%s/ is neither in layers nor in otherFolders", e.Name())
		}
	}
}

// parse calls f for each of the package's files, parsed with mode.
func (p pkg) parse(t *testing.T, mode parser.Mode, f func(name string, file *ast.File)) {
	t.Helper()
	for _, name := range p.files() {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		f(name, file)
	}
}

func TestOneDocPerPackage(t *testing.T) {
	for _, p := range packages(t) {
		documented := false
		p.parse(t, parser.PackageClauseOnly|parser.ParseComments, func(name string, file *ast.File) {
			switch {
			case name == "doc.go":
				documented = file.Doc != nil
			case file.Doc != nil:
				t.Errorf("%s/%s has a package comment: it belongs in doc.go", p.ImportPath, name)
			}
		})
		if !documented {
			t.Errorf("%s has no doc.go with a package comment", p.ImportPath)
		}
	}
}

// The standard package runtime is imported as goruntime, because gaol has a package of the
// same name.
func TestStandardRuntimeName(t *testing.T) {
	for _, p := range packages(t) {
		p.parse(t, parser.ImportsOnly, func(name string, file *ast.File) {
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if path == "runtime" && (spec.Name == nil || spec.Name.Name != "goruntime") {
					t.Errorf("%s/%s imports the standard runtime: name it goruntime", p.ImportPath, name)
				}
			}
		})
	}
}
