package npm

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/settings"
	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// esbuildVar is the variable with a folder that has esbuild in node_modules.
const esbuildVar = "GAOL_ESBUILD"

// packagesVar is the variable with the folder of packages that snippets import.
const packagesVar = "GAOL_SNIPPET_PACKAGES"

// stubs has packages in the shape of a framework's.
const stubs = "../../runtime/snippets/testdata/packages/node_modules"

// BenchmarkSnippet compares a snippet in gaol with one in a worker thread of the caller's process, in which nothing
// confines it: by the Go package snippets, and by gaol/snippets of the npm package. They take turns.
func BenchmarkSnippet(b *testing.B) {
	packages, err := filepath.Abs(cmp.Or(os.Getenv(packagesVar), stubs))
	if err != nil {
		b.Fatal(err)
	}
	inProcess := startInProcess(b, packages)
	npm := startScript(b, "snippets.mjs", "gaol", startSnippetServer(b, packages))
	runner := newRunner(b, packages)
	for _, name := range []string{"plain", "framework"} {
		folder := filepath.Join("testdata/snippets", name)
		in := snippets.Input{Files: snippetFiles(b, folder)}
		b.Run(name, func(b *testing.B) {
			medians := takeTurns(b,
				spaced(func() (time.Duration, error) { return inProcess.measure("run " + folder) }),
				spaced(func() (time.Duration, error) { return runSnippet(b, runner, in) }),
				spaced(func() (time.Duration, error) { return npm.measure("run " + folder) }))
			for i, side := range []string{"in-process", "go", "npm"} {
				b.ReportMetric(float64(medians[i].Microseconds()), side+"-µs")
				if i > 0 {
					b.ReportMetric(float64(medians[i])/float64(medians[0]), side+"-ratio")
				}
			}
		})
	}
}

// pause is the time between measurements. Each side does work after a call, which slows down the next one: the thread is
// ended, and the next sandbox is created.
const pause = 50 * time.Millisecond

// spaced pauses after a measurement.
func spaced(m measurement) measurement {
	return func() (time.Duration, error) {
		defer time.Sleep(pause)
		return m()
	}
}

// startInProcess starts a driver without a sandbox.
func startInProcess(b *testing.B, packages string) *driver {
	b.Helper()
	folder := os.Getenv(esbuildVar)
	if folder == "" {
		b.Skipf("%s names no folder with esbuild: make bench-snippets does", esbuildVar)
	}
	return startScript(b, "snippets.mjs", "in-process", folder, packages)
}

// startSnippetServer starts a server with packages, and returns its socket.
func startSnippetServer(b *testing.B, packages string) (socket string) {
	b.Helper()
	return servertest.Start(b, servertest.Options{Settings: func(o *settings.Settings) {
		o.Snippets = settings.Snippets{NodeModules: packages, Adapter: snippets.Directive.Name}
	}}).Socket
}

func newRunner(b *testing.B, packages string) *snippets.Runner {
	b.Helper()
	r, err := snippets.New(snippets.Options{
		Adapter: snippets.Directive, NodeModules: packages, Cache: b.TempDir(),
		Sandbox: runtime.Options{CgroupParent: harness.Parent + "/tenants/sdk", Store: os.Getenv(harness.StoreVar)},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Close(); err != nil {
			b.Error(err)
		}
	})
	return r
}

// snippetFiles reads the files of a snippet from the host.
func snippetFiles(b *testing.B, folder string) (files []snippets.File) {
	b.Helper()
	names, err := filepath.Glob(folder + "/src/*")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, snippets.File{Path: strings.TrimPrefix(name, folder+"/"), Source: string(text)})
	}
	return files
}

// runSnippet measures a run.
func runSnippet(b *testing.B, r *snippets.Runner, in snippets.Input) (time.Duration, error) {
	b.Helper()
	start := time.Now()
	out, err := r.Run(b.Context(), in)
	took := time.Since(start)
	if err == nil && (len(out.Errors) > 0 || len(out.Logs) != 1 || out.Logs[0] != `[log] total 15 {"items":2}`) {
		err = fmt.Errorf("logs %q, errors %q", out.Logs, out.Errors)
	}
	return took, err
}
