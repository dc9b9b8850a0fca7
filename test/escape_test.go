package test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
)

// compiled builds a program once: one of testdata/escape, or of another folder there
// that the name tells. With the ending .node it is a library that Node loads.
var compiled = func() func(name string) ([]byte, error) {
	var mu sync.Mutex
	built := map[string][]byte{}
	return func(name string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if built[name] != nil {
			return built[name], nil
		}
		dir, err := os.MkdirTemp("", "gaol-escape-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		to, source := filepath.Join(dir, "program"), name
		if !strings.Contains(source, "/") {
			source = "escape/" + source
		}
		kind := []string{"-static"}
		source, isLibrary := strings.CutSuffix(source, ".node")
		if isLibrary {
			kind = []string{"-shared", "-fPIC", "-DADDON"}
		}
		cc := exec.Command("cc", append(kind, "-Os", "-s", "-o", to, filepath.Join("testdata", source+".c"))...)
		cc.Stderr = os.Stderr
		if err := cc.Run(); err != nil {
			return nil, err
		}
		built[name], err = os.ReadFile(to)
		return built[name], err
	}
}()

// install puts a program that compiled builds into the guest's tree, as the guest
// would, and returns its path there.
func install(t testing.TB, rt *runtime.NodeRuntime, name string) string {
	t.Helper()
	program, err := compiled(name)
	if err != nil {
		t.Fatal(err)
	}
	to := "/workspace/" + filepath.Base(name)
	res := run(t, rt, `import fs from 'node:fs'; fs.writeFileSync(process.argv[2], fs.readFileSync(0), { mode: 0o755 })`,
		runtime.RunOptions{Args: []string{to}, Stdin: bytes.NewReader(program)})
	if res.ExitCode != 0 {
		t.Fatalf("install %s: %s", name, res.Stderr)
	}
	return to
}

// output is what a command prints; it must not fail.
func output(t testing.TB, rt *runtime.NodeRuntime, o runtime.RunOptions, name string, args ...string) string {
	t.Helper()
	res, err := rt.Command(t.Context(), name, args, o)
	if err != nil {
		t.Fatal(err)
	}
	if res.ExitCode != 0 {
		t.Errorf("%s: exit code %d, cause %q, stderr %s", name, res.ExitCode, res.Cause, res.Stderr)
	}
	return strings.TrimSpace(string(res.Stdout))
}

// background is a command that goes on while the test does something else.
type background struct {
	first string      // its first line
	lines chan string // further ones
	stop  context.CancelFunc
}

// inBackground starts a command and returns once it has printed its first line.
func inBackground(t testing.TB, rt *runtime.NodeRuntime, name string, args ...string) *background {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &background{lines: make(chan string, 1000), stop: cancel}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer writer.Close()
		res, err := rt.Command(ctx, name, args, runtime.RunOptions{OnStdout: func(p []byte) { _, _ = writer.Write(p) }})
		if res == nil {
			t.Error(err)
		} else if len(res.Stderr) > 0 {
			t.Errorf("%s: %s", name, res.Stderr)
		}
	}()
	go func() {
		defer reader.Close()
		defer close(b.lines)
		for s := bufio.NewScanner(reader); s.Scan(); {
			b.lines <- s.Text()
		}
	}()
	t.Cleanup(b.end)
	b.first = b.next(t)
	return b
}

// next waits for the next line.
func (b *background) next(t testing.TB) string {
	t.Helper()
	select {
	case line := <-b.lines:
		return line
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is printed")
		return ""
	}
}

// rest waits for the end and returns the lines until then.
func (b *background) rest() []string {
	var all []string
	for line := range b.lines {
		all = append(all, line)
	}
	return all
}

func (b *background) end() {
	b.stop()
	b.rest()
}
