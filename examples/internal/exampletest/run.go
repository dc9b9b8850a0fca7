package exampletest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gaol/runtime"
)

// Run runs an example and compares its output with the last text block of the README.md in
// the current folder.
func Run(t *testing.T, run func(context.Context, io.Writer, runtime.Options) error) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, Options(t)); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if diff := cmp.Diff(documented(t), out.String()); diff != "" {
		t.Errorf("output differs from README.md (-want +got):\n%s", diff)
	}
}

// documented returns the last text block of README.md.
func documented(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var block, fence string
	for line := range strings.Lines(string(page)) {
		switch info := strings.TrimLeft(line, "`"); {
		case fence == "" && info == "text\n" && len(line) >= len("```text\n"):
			block, fence = "", strings.TrimSuffix(line, info)
		case fence != "" && line == fence+"\n":
			fence = ""
		case fence != "":
			block += line
		}
	}
	return block
}

// Options returns the options of a runtime that belongs to the test alone. When the test ends,
// it checks that nothing of such a runtime is left.
func Options(t *testing.T) runtime.Options {
	t.Helper()
	parent := fmt.Sprintf("/gaol-example-%d", os.Getpid())
	before, goroutines := takeInventory(parent), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := runtime.CloseIdle(); err != nil {
			t.Error(err)
		}
		for _, left := range before.leftovers(parent) {
			t.Error("left behind: " + left)
		}
		goleak.VerifyNone(t, goroutines)
	})
	return runtime.Options{CgroupParent: parent}
}
