package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
)

// StartProgram starts a Node program that runs until stop is called. It returns when the
// program has printed something.
func StartProgram(t testing.TB, rt *runtime.NodeRuntime, code string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan struct{}), make(chan struct{})
	report := sync.OnceFunc(func() { close(up) })
	go func() {
		defer close(ended)
		res, err := rt.Run(ctx, code, runtime.RunOptions{Timeout: -1, OnStdout: func([]byte) { report() }})
		if !errors.Is(err, context.Canceled) || res == nil || res.Cause != runtime.CauseCanceled {
			t.Errorf("the program exited: %+v, %v", res, err)
		}
		report()
	}()
	<-up
	return func() {
		cancel()
		<-ended
	}
}

// StartNode starts a Node program that runs until the test ends, and returns its pid on
// the host.
func StartNode(t testing.TB, rt *runtime.NodeRuntime) (pid int) {
	t.Helper()
	before := ProcessesIn(JailCgroups())
	stop := StartProgram(t, rt, `process.stdin.on('data', () => {}); import('node:fs').then(() => console.log('up')); setInterval(() => {}, 1000)`)
	t.Cleanup(stop)
	for _, pid := range ProcessesIn(JailCgroups()) {
		if !strings.Contains(" "+strings.Join(before, " ")+" ", " "+pid+" ") {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	t.Fatal("the run has no process")
	return 0
}

var compiled struct {
	sync.Mutex
	programs map[string][]byte
}

// Compile compiles a C program, once for each test binary. The source is testdata/NAME.c
// of the package under test, or else ../testdata/escape/NAME.c. A name that ends in .node
// is a library that Node loads.
func Compile(name string) ([]byte, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if program, ok := compiled.programs[name]; ok {
		return program, nil
	}
	base, isLibrary := strings.CutSuffix(name, ".node")
	kind := []string{"-static"}
	if isLibrary {
		kind = []string{"-shared", "-fPIC", "-DADDON"}
	}
	source := filepath.Join("testdata", base+".c")
	if _, err := os.Stat(source); err != nil {
		source = filepath.Join("../testdata/escape", base+".c")
	}
	dir, err := os.MkdirTemp("", "gaol-compile-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	to := filepath.Join(dir, "program")
	cc := exec.Command("cc", append(kind, "-Os", "-s", "-o", to, source)...)
	cc.Stderr = os.Stderr
	if err := cc.Run(); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(to)
	if err == nil {
		if compiled.programs == nil {
			compiled.programs = map[string][]byte{}
		}
		compiled.programs[name] = program
	}
	return program, err
}

// Install writes a program of Compile to /workspace, as the guest, and returns its path.
func Install(t testing.TB, rt *runtime.NodeRuntime, name string) string {
	t.Helper()
	program, err := Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	to := "/workspace/" + filepath.Base(name)
	res := Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync(process.argv[2], fs.readFileSync(0), { mode: 0o755 })`,
		runtime.RunOptions{Args: []string{to}, Stdin: bytes.NewReader(program)})
	if res.ExitCode != 0 {
		t.Fatalf("install %s: %s", name, res.Stderr)
	}
	return to
}

// Output runs a command of the image and returns its output. The command must succeed.
func Output(t testing.TB, rt *runtime.NodeRuntime, o runtime.RunOptions, name string, args ...string) string {
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

// Background is a command that runs while the test does something else.
type Background struct {
	First string      // its first line of output
	lines chan string // the following ones
	stop  context.CancelFunc
}

// StartCommand starts a command of the image and returns when it has printed a line. The
// command is stopped when the test ends.
func StartCommand(t testing.TB, rt *runtime.NodeRuntime, name string, args ...string) *Background {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &Background{lines: make(chan string, 1000), stop: cancel}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer writer.Close()
		res, err := rt.Command(ctx, name, args, runtime.RunOptions{Timeout: -1, OnStdout: func(p []byte) { _, _ = writer.Write(p) }})
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
	t.Cleanup(func() { b.Stop() })
	b.First = b.Next(t)
	return b
}

// Next waits for the next line.
func (b *Background) Next(t testing.TB) string {
	t.Helper()
	select {
	case line := <-b.lines:
		return line
	case <-time.After(time.Minute):
		t.Fatal("no output for a minute")
		return ""
	}
}

// Rest waits for the end and returns the remaining lines.
func (b *Background) Rest() []string {
	var all []string
	for line := range b.lines {
		all = append(all, line)
	}
	return all
}

// Drain discards the lines that have arrived.
func (b *Background) Drain() {
	for len(b.lines) > 0 {
		<-b.lines
	}
}

// Quiet reports whether the command still runs and has printed no further line.
func (b *Background) Quiet() bool {
	select {
	case <-b.lines:
		return false
	default:
		return true
	}
}

// Stop cancels the command, waits for its end and returns the remaining lines.
func (b *Background) Stop() (rest []string) {
	b.stop()
	return b.Rest()
}
