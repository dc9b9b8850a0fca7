package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

type command = func(context.Context, runtime.CommandCall) (runtime.CommandResult, error)

func of(run command) map[string]runtime.HostCommand {
	return map[string]runtime.HostCommand{"cmd": {Run: run}}
}

// wait waits for the end of a call, and reports its beginning and its end.
func wait(begun, ended chan<- struct{}) command {
	return func(ctx context.Context, _ runtime.CommandCall) (runtime.CommandResult, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return runtime.CommandResult{}, ctx.Err()
	}
}

// sh runs a shell's script, and returns its exit code and outputs.
func sh(t *testing.T, rt *runtime.NodeRuntime, script string) string {
	t.Helper()
	res, err := rt.Command(t.Context(), "sh", []string{"-c", script}, runtime.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", res.ExitCode, bytes.TrimSpace(append(res.Stdout, res.Stderr...)))
}

func TestCommandLimits(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	o := runtime.Options{Calls: runtime.CallLimits{Calls: 3, Arguments: 1000, Result: 2000}, Commands: map[string]runtime.HostCommand{
		"cmd": {Run: show}, "input": {Run: show, Stdin: true},
		"large": {Run: func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
			return runtime.CommandResult{Stdout: make([]byte, 1500), Stderr: make([]byte, 501)}, nil
		}},
		"code": {Run: func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
			return runtime.CommandResult{ExitCode: 256}, nil
		}},
		"panic": {Run: func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) { panic("a secret") }},
		"slow": {Run: func(ctx context.Context, _ runtime.CommandCall) (runtime.CommandResult, error) {
			<-ctx.Done()
			return runtime.CommandResult{}, ctx.Err()
		}},
	}}
	rt := harness.Create(t, o)
	o.Calls.Timeout = time.Second
	impatient := harness.Create(t, o)
	for _, tc := range []struct{ name, script, want string }{
		{"calls", "cmd; cmd; cmd; cmd", "1 cmd [] \"\"\ncmd [] \"\"\ncmd [] \"\"\ncmd: more than 3 calls of host functions"},
		{"arguments", "cmd " + strings.Repeat("x", 1000), "1 cmd: the arguments are too large"},
		{"many arguments", "cmd " + strings.Repeat("x ", 501), "1 cmd: the arguments are too large"},
		{"arguments at the limit", "cmd " + strings.Repeat("x", 999) + " | wc -c", "0 1011"},
		{"input", "head -c 1001 /dev/zero | input", "1 input: the arguments are too large"},
		{"input and arguments", "head -c 600 /dev/zero | input " + strings.Repeat("x", 400), "1 input: the arguments are too large"},
		{"endless input", "input < /dev/zero", "1 input: the arguments are too large"},
		{"no input", "input <&-", "0 input [] \"\""},
		{"no streams", "(input <&- >&- 2>&-); echo $?", "0 125"},
		{"slow input", "mkfifo /tmp/p; sleep 100 > /tmp/p & input < /tmp/p", "1 input: the call has taken longer than 1s"},
		{"output", "large", "1 large: the outputs have 2001 bytes, the limit is 2000"},
		{"exit code", "code", "1 code: the exit code 256 is not between 0 and 255"},
		{"panic", "panic", "1 panic: the host function failed"},
		{"time", "slow", "1 slow: the host function took longer than 1s"},
	} {
		in := rt
		if strings.HasSuffix(tc.want, "than 1s") {
			in = impatient
		}
		if got := sh(t, in, tc.script); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A guest has few calls at the same time, and further programs wait.
func TestConcurrentCommands(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	var running, most atomic.Int32
	rt := harness.Create(t, runtime.Options{Calls: runtime.CallLimits{Concurrent: 2}, Commands: of(func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		return runtime.CommandResult{Stdout: []byte("x")}, nil
	})})
	if got := sh(t, rt, `for i in 1 2 3 4 5 6 7 8; do cmd & done; wait`); got != "0 xxxxxxxx" || most.Load() > 2 {
		t.Errorf("%s, %d at once", got, most.Load())
	}
}

// A call ends with its program, its run and its runtime, also while the program writes.
func TestCommandsEnd(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	rt := harness.Create(t, runtime.Options{Commands: map[string]runtime.HostCommand{
		"cmd": {Run: wait(begun, ended)}, "input": {Run: show, Stdin: true},
		"large": {Run: func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
			return runtime.CommandResult{Stdout: make([]byte, 1<<20)}, nil
		}},
	}})
	p, err := rt.Spawn(t.Context(), "sh", []string{"-c", "cmd & read x; kill -9 $!; wait $!; echo $?; large | head -c 1 | wc -c"}, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := io.WriteString(p.Stdin, "\n"); err != nil {
		t.Error(err)
	}
	<-ended
	if text, err := io.ReadAll(p.Stdout); err != nil || string(text) != "137\n1\n" {
		t.Errorf("killed: %q %v", text, err)
	}
	p, err = rt.Spawn(t.Context(), "sh", []string{"-c", "input & sleep 100 | large & cmd"}, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	p.Kill()
	<-ended
	if res, err := p.Wait(t.Context()); err != nil || !strings.Contains(fmt.Sprint(res.Calls), "ended first") {
		t.Errorf("%+v %v", res, err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := rt.Command(t.Context(), "cmd", nil, runtime.RunOptions{Timeout: -1})
		failed <- err
	}()
	<-begun
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	if err := <-failed; !errors.Is(err, runtime.ErrClosed) {
		t.Error(err)
	}
	if err := rt.AddCommands(of(show)); !errors.Is(err, runtime.ErrClosed) {
		t.Error(err)
	}
}

// Commands can be added while programs run. They count with functions, and are events.
func TestAddCommands(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	var rt *runtime.NodeRuntime
	add := func(_ context.Context, c runtime.CommandCall) (runtime.CommandResult, error) {
		answer := func(context.Context, runtime.CommandCall) (runtime.CommandResult, error) {
			return runtime.CommandResult{Stdout: []byte(strings.Join(c.Args, " "))}, nil
		}
		return runtime.CommandResult{}, rt.AddCommands(map[string]runtime.HostCommand{c.Args[0]: {Run: answer}})
	}
	f := runtime.NewFunction0("a function", func(context.Context) (int, error) { return 1, nil })
	rt = harness.Create(t, runtime.Options{Commands: map[string]runtime.HostCommand{"add": {Run: add}}, Bindings: map[string]any{"f": f}, Calls: runtime.CallLimits{Calls: 5}})
	var names []string
	var output string
	res, err := rt.Run(t.Context(), `
		import { execSync } from 'node:child_process'; const run = script => String(execSync(script)).trim();
		f(); console.log(run('add new one && new'), run('add new two && new')); try { f() } catch (e) { console.log(e.code) }`, runtime.RunOptions{OnEvent: func(e runtime.Event) {
		switch e := e.(type) {
		case runtime.CallEvent:
			names = append(names, e.Call.Name)
		case runtime.StdoutEvent:
			output += string(e.Data)
		}
	}})
	if err != nil || output != "new one new two\nERR_TOO_MANY_CALLS\n" || strings.Join(names, " ") != "f add new add new f" || len(res.Calls) != 6 {
		t.Errorf("%v %q %q", err, output, names)
	}
	many := map[string]runtime.HostCommand{}
	for n := range 1024 {
		many[fmt.Sprintf("c%d", n)] = runtime.HostCommand{Run: show}
	}
	for name, given := range map[string]map[string]runtime.HostCommand{
		"upper case": {"Cmd": {Run: show}}, "a path": {"a/b": {Run: show}}, "hidden": {".command": {Run: show}}, "empty": {"": {Run: show}},
		"long": {strings.Repeat("x", 65): {Run: show}}, "no function": {"x": {}}, "too many": many,
	} {
		if option, ok := errors.AsType[*runtime.OptionError](rt.AddCommands(given)); !ok || option.Option != "Commands" {
			t.Errorf("%s is accepted", name)
		}
	}
	delete(many, "c0")
	delete(many, "c1")
	if err := rt.AddCommands(many); err != nil {
		t.Error(err)
	}
	if got := sh(t, rt, "c1023"); got != "0 c1023 [] \"\"" {
		t.Errorf("%q", got)
	}
}

// Cells of contexts, and their remaining tasks, can call.
func TestCommandsOfContext(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	rt := harness.Create(t, runtime.Options{Commands: echo})
	c, err := rt.NewContext(t.Context(), runtime.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		e, err := c.Evaluate(t.Context(), `require('node:child_process').execSync('get-weather; get-weather').length`, runtime.EvaluateOptions{MaxCalls: 2})
		if err != nil || string(e.Value) != "36" || len(e.Calls) != 2 {
			t.Errorf("%d: %v %s %+v %v", n, err, e.Value, e.Calls, e.Error)
		}
	}
	e, err := c.Evaluate(t.Context(), `require('node:child_process').execSync('get-weather; get-weather')`, runtime.EvaluateOptions{MaxCalls: 1})
	if err != nil || e.Error == nil || !strings.Contains(e.Error.Message, "more than 1 calls") {
		t.Errorf("%v %+v", err, e.Error)
	}
}

// Each runtime has its own commands, and nothing but a command of a runtime can call its host.
func TestOtherCallersOfCommands(t *testing.T) {
	harness.Require(t, runtime.FeatureCommands)
	var one, other sync.Map
	note := func(m *sync.Map) command {
		return func(_ context.Context, c runtime.CommandCall) (runtime.CommandResult, error) {
			m.Store(strings.Join(c.Args, " "), true)
			return runtime.CommandResult{}, nil
		}
	}
	a := harness.Create(t, runtime.Options{Commands: of(note(&one))})
	b := harness.Create(t, runtime.Options{Commands: of(note(&other))})
	without := harness.Create(t, runtime.Options{})
	sh(t, a, "cmd a")
	sh(t, b, "cmd b")
	if _, ok := one.Load("a"); !ok {
		t.Error("a's command was not called")
	}
	if _, ok := one.Load("b"); ok {
		t.Error("b has called a's command")
	}
	if _, ok := other.Load("b"); !ok {
		t.Error("b's command was not called")
	}
	copied, err := a.FS().ReadFile(folder + "/cmd")
	if err != nil {
		t.Fatal(err)
	}
	for name, rt := range map[string]*runtime.NodeRuntime{"the same": a, "another": b, "one without": without} {
		if err := rt.FS().WriteFile("/workspace/cmd", copied, hostfs.WriteOptions{Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, rt, "./cmd x"); got != "125 ./cmd: the host does not serve this command here" {
			t.Errorf("a copy in %s runtime: %q", name, got)
		}
		want := "0 1" // EPERM
		if rt == without {
			want = "0 97" // EAFNOSUPPORT
		}
		if got := sh(t, rt, harness.Install(t, rt, "askcommand")); got != want {
			t.Errorf("the system call in %s runtime: %q, want %q", name, got, want)
		}
	}
	if got := sh(t, a, folder+"/.command x"); got != "125 "+folder+"/.command: the host does not serve this command here" {
		t.Errorf("the program itself: %q", got)
	}
	if got := sh(t, a, "cd "+folder+"; touch x; rm cmd; ln -s /bin/sh y; mv cmd z; ls; grep "+folder+" /proc/self/mountinfo | cut -d' ' -f4,5"); !strings.HasPrefix(got, "0 cmd\n/ "+folder) || strings.Count(got, "Read-only") != 4 {
		t.Errorf("changing the folder: %q", got)
	}
}
