package snippet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gaol/rootfs"
)

// outcome is the report of a script in testdata about a module or a cell.
type outcome struct {
	Value string
	Calls int
	Error string
	Stack string
}

// imageNode returns the command that starts the default image's Node outside jails, with
// the image's own loader and libraries. `make image` builds it.
func imageNode(t *testing.T) []string {
	t.Helper()
	store, err := rootfs.Open("")
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Ensure(t.Context(), "", rootfs.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	loaders, _ := filepath.Glob(image.Root() + "/lib*/ld-linux-*")
	libraries, _ := filepath.Glob(image.Root() + "/usr/lib/*-linux-gnu")
	if len(loaders) != 1 || len(libraries) != 1 {
		t.Fatalf("the image has the loaders %q and the libraries %q, want one of each", loaders, libraries)
	}
	return []string{loaders[0], "--library-path", libraries[0], image.Root() + "/usr/local/bin/node"}
}

// runNode runs a script with JSON as input, and decodes its output.
func runNode(t *testing.T, script string, in, out any) {
	t.Helper()
	node := imageNode(t)
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(node[0], append(node[1:], filepath.Join("testdata", script))...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, &stderr)
	}
	if err := json.Unmarshal(got, out); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, got)
	}
}

// runModules imports modules in one process, in order.
func runModules(t *testing.T, programs []*Program) []outcome {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i, p := range programs {
		file := filepath.Join(dir, fmt.Sprintf("%03d.mjs", i))
		if err := os.WriteFile(file, []byte(p.Code()), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var got []outcome
	runNode(t, "modules.mjs", files, &got)
	return got
}

// runCells runs notebooks in one process, each in its own context.
func runCells(t *testing.T, notebooks ...[]*Program) [][]outcome {
	t.Helper()
	var in [][]string
	for _, cells := range notebooks {
		var codes []string
		for _, p := range cells {
			codes = append(codes, p.Code())
		}
		in = append(in, codes)
	}
	var got [][]outcome
	runNode(t, "cells.mjs", in, &got)
	return got
}

// expect compares an outcome with a value; a value that ends with ! is an error.
func expect(t *testing.T, code, program, want string, got outcome) {
	t.Helper()
	if strings.HasSuffix(want, "!") {
		if got.Error == "" {
			t.Errorf("%q as\n%s\ngave %s, want an error", code, program, got.Value)
		}
		return
	}
	if got.Value != want || got.Error != "" {
		t.Errorf("%q as\n%s\ngave %s %s, want %s", code, program, got.Value, got.Error, want)
	}
}

func TestModuleShapes(t *testing.T) {
	var programs []*Program
	for _, s := range shapes {
		p, err := Module(s.code)
		if err != nil {
			t.Fatalf("%q: %v", s.code, err)
		}
		programs = append(programs, p)
	}
	for i, got := range runModules(t, programs) {
		expect(t, shapes[i].code, programs[i].Code(), shapes[i].value, got)
		if got.Error == "" && got.Calls != 1 {
			t.Errorf("%q delivered %d times", shapes[i].code, got.Calls)
		}
	}
}

func TestCellShapes(t *testing.T) {
	var notebooks [][]*Program
	for _, s := range shapes {
		p, err := Cell(s.code, nil)
		if err != nil {
			t.Fatalf("%q: %v", s.code, err)
		}
		notebooks = append(notebooks, []*Program{p})
	}
	for i, got := range runCells(t, notebooks...) {
		want := shapes[i].value
		if shapes[i].cell != "" {
			want = shapes[i].cell
		}
		expect(t, shapes[i].code, notebooks[i][0].Code(), want, got[0])
	}
}
