package run

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// terminal is a spawned process on a terminal, with a reader for its output.
type terminal struct {
	*runtime.Process
	screen *bufio.Reader
}

func onTerminal(t testing.TB, rt *runtime.NodeRuntime, args ...string) terminal {
	t.Helper()
	p := spawn(t, rt, runtime.SpawnOptions{Terminal: &runtime.Terminal{Rows: 30, Cols: 100}}, args...)
	return terminal{p, bufio.NewReader(p.Stdout)}
}

func TestTerminalOfNode(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const code = `
		import fs from 'node:fs'; import tty from 'node:tty'; import { execFileSync } from 'node:child_process';
		const { stdin, stdout, stderr } = process;
		console.log(JSON.stringify([stdin.isTTY, stdout.isTTY, stderr.isTTY, tty.isatty(0), stdout.columns, stdout.rows, process.env.TERM, stdout.getColorDepth() > 1,
			fs.readlinkSync('/proc/self/fd/0'), fs.fstatSync(1).uid, execFileSync('tty', { stdio: ['inherit', 'pipe', 'inherit'] }).toString().trim()]));
		stdout.on('resize', () => { console.log('now ' + stdout.columns + ' ' + stdout.rows); });
		process.on('SIGINT', () => { console.log('interrupted'); });
		stdin.on('data', (d) => console.log('typed', JSON.stringify(String(d))));
		stdin.on('end', () => { console.log('bye'); __return(1); process.exit(3); });`
	p := spawnCode(t, rt, code, runtime.SpawnOptions{Terminal: &runtime.Terminal{Rows: 30, Cols: 100, Term: "xterm"}})
	screen := bufio.NewReader(p.Stdout)
	harness.Expect(t, screen, `[true,true,true,true,100,30,"xterm",true,"/dev/pts/0",1000,"/dev/pts/0"]`)
	if err := p.Resize(40, 120); err != nil {
		t.Error(err)
	}
	harness.Expect(t, screen, "now 120 40\r\n")
	send(t, p, "hällo\n")
	harness.Expect(t, screen, `typed "hällo\n"`)
	send(t, p, "\x03")
	harness.Expect(t, screen, "interrupted\r\n")
	if harness.InGVisor() { // programs do not see the end of a terminal's input
		return
	}
	if err := p.Stdin.Close(); err != nil {
		t.Error(err)
	}
	harness.Expect(t, screen, "bye\r\n")
	if _, err := io.WriteString(p.Stdin, "x"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed keyboard: %v", err)
	}
	if res := wait(t, p); res.ExitCode != 3 || res.Cause != "" || string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
	for _, r := range []io.Reader{screen, p.Stderr} {
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			t.Errorf("after the end: %q, %v", rest, err)
		}
	}
	if err := p.Resize(1, 1); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
}

func TestTerminalSizes(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{Terminal: &runtime.Terminal{}, Env: map[string]string{"TERM": "mine"}}, "sh", "-c", "stty size; echo $TERM; read x; stty size; read x; stty size")
	screen := bufio.NewReader(p.Stdout)
	harness.Expect(t, screen, "24 80\r\nmine\r\n")
	for _, size := range [][2]uint16{{0, 0}, {1, 0}, {0, 1}} {
		if err := p.Resize(size[0], size[1]); err == nil {
			t.Errorf("%v: no error", size)
		}
	}
	send(t, p, "\n")
	harness.Expect(t, screen, "24 80\r\n")
	if err := p.Resize(2000, 3000); err != nil {
		t.Error(err)
	}
	send(t, p, "\n")
	harness.Expect(t, screen, "2000 3000\r\n")
	wait(t, p)
	p = spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "tty; : </dev/tty; true")
	if err := p.Resize(1, 1); !errors.Is(err, runtime.ErrNoTerminal) {
		t.Errorf("without a terminal: %v", err)
	}
	text, _ := io.ReadAll(p.Stdout)
	errs, _ := io.ReadAll(p.Stderr)
	if string(text) != "not a tty\n" || !strings.Contains(string(errs), "/dev/tty") {
		t.Errorf("without a terminal: %q, %q", text, errs)
	}
	wait(t, p)
}

// A shell has job control: keys reach only the foreground job.
func TestTerminalJobs(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := onTerminal(t, rt, "bash", "--norc", "--noediting", "-i")
	type step struct{ keys, shows string }
	for _, s := range []step{
		{"PS1='> '; echo re''ady\n", "ready\r\n"},
		{"sh -c 'echo in''side; exec sleep 100'\n", "inside\r\n"},
		{"\x03", "^C"},
		{"echo $?''x\n", "130x\r\n"},
		{"sh -c 'echo in''side; exec sleep 100'\n", "inside\r\n"},
		{"\x1a", "Stopped"},
		{"jobs | grep -c Stop; echo a''b\n", "1\r\nab\r\n"},
		{"bg; echo c''d\n", "cd\r\n"},
		{"kill %1; wait; echo e''f\n", "ef\r\n"},
		{"sh -c 'echo be''gun; exec cat'\n", "begun\r\n"},
		{"some\n", "some\r\nsome\r\n"},
		{"\x04", ""},
		{"echo $?''y\n", "0y\r\n"},
		{"exit 9\n", ""},
	} {
		if harness.InGVisor() && s.shows == "^C" { // it does not echo control characters
			s.shows = "> "
		}
		if harness.InGVisor() && s.keys == "\x04" { // programs do not see the end of a terminal's input
			return
		}
		send(t, p.Process, s.keys)
		harness.Expect(t, p.screen, s.shows)
	}
	if res := wait(t, p.Process); res.ExitCode != 9 {
		t.Errorf("%+v", res)
	}
}

func TestTerminalREPL(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := onTerminal(t, rt, "node")
	harness.Expect(t, p.screen, "> ")
	send(t, p.Process, "6 * 7\r")
	harness.Expect(t, p.screen, "\x1b[33m42\x1b[39m")
	send(t, p.Process, "await Promise.resolve('la' + 'ter')\r")
	harness.Expect(t, p.screen, "'later'")
	send(t, p.Process, ".exit\r")
	if res := wait(t, p.Process); res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

// Output that a program printed last can be read after its end. The kernel buffers little,
// and the program waits until the rest is read.
func TestTerminalLosesNothing(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for range 20 {
		p := onTerminal(t, rt, "sh", "-c", "stty -opost; head -c 2000 /dev/zero | tr '\\0' x")
		wait(t, p.Process)
		if text, err := io.ReadAll(p.screen); err != nil || len(text) != 2000 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}
	p := onTerminal(t, rt, "sh", "-c", "stty -opost; head -c 20000000 /dev/zero; echo end")
	time.Sleep(100 * time.Millisecond)
	select {
	case <-p.Done():
		t.Error("it did not wait")
	default:
	}
	text, err := io.ReadAll(p.screen)
	if err != nil || len(text) != 20000004 || !bytes.HasSuffix(text, []byte("end\n")) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	wait(t, p.Process)
}

// Keys that no program reads are kept, and a program that reads them raw gets all of them.
func TestTerminalKeysWait(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const total = 1 << 20
	p := onTerminal(t, rt, "sh", "-c", fmt.Sprintf("stty raw -echo; echo up; sleep 0.3; head -c %d | wc -c", total))
	harness.Expect(t, p.screen, "up")
	written := make(chan error)
	go func() {
		_, err := p.Stdin.Write(bytes.Repeat([]byte("k"), total))
		written <- err
	}()
	harness.Expect(t, p.screen, fmt.Sprint(total))
	if err := <-written; err != nil {
		t.Error(err)
	}
	wait(t, p.Process)

	p = onTerminal(t, rt, "sh", "-c", "stty raw -echo; echo up; sleep 100")
	harness.Expect(t, p.screen, "up")
	go func() {
		_, err := p.Stdin.Write(make([]byte, total))
		written <- err
	}()
	time.Sleep(50 * time.Millisecond)
	p.Kill()
	if err := <-written; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("at the end: %v", err)
	}
	wait(t, p.Process)
}

// Nothing that a guest does with its terminal delays the host.
func TestTerminalIsMisused(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for name, script := range map[string]string{
		"closed":         "exec 0<&- 1<&- 2<&-; sleep 0.1",
		"opened again":   "exec 0<&- 1<&- 2<&-; sleep 0.05; echo back >/dev/pts/0; sleep 0.1",
		"stopped":        "stty -a >/dev/null; kill -STOP $$",
		"given up":       "setsid sh -c 'sleep 100' & exit",
		"output stopped": "stty ixon; sleep 0.05; yes",
		"exclusive":      `exec node -e "process.stdin.setRawMode(true); setInterval(() => {}, 1000)"`,
		"resized":        "while :; do stty rows 7 cols 9; stty rows 9 cols 7; done",
		"flood":          "yes",
		"echo to itself": "cat /dev/pts/0 >/dev/pts/0",
		"hung up on":     "trap '' HUP TERM; sleep 100 & sleep 100",
	} {
		p := onTerminal(t, rt, "sh", "-c", script)
		keys := "keys\n"
		if name == "output stopped" {
			keys = "\x13" + keys
		}
		if _, err := io.WriteString(p.Stdin, keys); err != nil && !errors.Is(err, io.ErrClosedPipe) { // it may have ended
			t.Errorf("%s: %v", name, err)
		}
		time.Sleep(150 * time.Millisecond)
		if err := p.Resize(10, 10); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "opened again" && !harness.InGVisor() { // where a terminal that all programs have closed has ended
			harness.Expect(t, p.screen, "back\r\n")
		}
		began := time.Now()
		p.Kill()
		wait(t, p.Process)
		_, err := io.ReadAll(p.screen)
		if took := time.Since(began); err != nil || took > 20*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// Another run that holds a terminal open does not delay the caller.
func TestTerminalHeldByAnother(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := onTerminal(t, rt, "cat")
	other := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "exec 3<>/dev/pts/0 && echo open; while :; do echo noise >&3; done")
	harness.Expect(t, bufio.NewReader(other.Stdout), "open\n")
	harness.Expect(t, p.screen, "noise\r\n")
	p.Kill()
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(p.screen)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("what it shows does not end")
	}
	wait(t, p.Process)
	other.Kill()
	wait(t, other)
}

// A process on a terminal has three descriptors, all of the guest's end. The filter, which
// jail/seccomp tests, prevents it from typing into the terminal (TIOCSTI) or changing its
// line discipline.
func TestTerminalGivesNoHostEnd(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := onTerminal(t, rt, "sh", "-c", "for f in /proc/$$/fd/*; do readlink $f; done; echo /dev/pts/*")
	text, err := io.ReadAll(p.screen)
	fields := strings.Fields(string(text))
	if i := slices.Index(fields, "/dev/pts/ptmx"); err != nil || i < 4 || slices.ContainsFunc(fields[:i], func(f string) bool { return f != "/dev/pts/0" && f != "/dev/tty" }) {
		t.Errorf("%q, %v", text, err)
	}
	wait(t, p.Process)
}

// Terminals work in a runtime with file permissions.
func TestTerminalUnderPermissions(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.Create(t, runtime.Options{Permissions: policy.Permissions{
		FS: policy.Scope{Default: policy.Deny, Rules: []policy.Rule{
			{Mode: policy.Allow, Operations: []policy.Operation{"read", "readdir", "stat", "readlink", "execute"}, Paths: []string{"/usr/**", "/workspace/**"}},
		}},
		Process: policy.Scope{Default: policy.Deny},
	}})
	p := onTerminal(t, rt, "sh", "-c", "[ -t 0 ] && echo yes; : </dev/tty && echo tty; echo x >/workspace/f || echo denied")
	text, err := io.ReadAll(p.screen)
	if err != nil || !strings.HasPrefix(string(text), "yes\r\ntty\r\n") || !strings.HasSuffix(string(text), "denied\r\n") {
		t.Errorf("%q, %v", text, err)
	}
	wait(t, p.Process)
}

// A guest that opens all terminals affects only its own runtime.
func TestTerminalsUsedUp(t *testing.T) {
	if harness.InGVisor() {
		t.Skip("only memory and Limits.OpenFiles limit terminals in gVisor")
	}
	rt := harness.Create(t, runtime.Options{})
	taker := spawnCode(t, rt, `
		import fs from 'node:fs';
		try { for (;;) fs.openSync('/dev/ptmx', 'r+'); } catch (err) { console.log(err.code); }
		setInterval(() => {}, 1000)`, runtime.SpawnOptions{})
	harness.Expect(t, bufio.NewReader(taker.Stdout), "ENOSPC\n")
	if p, err := rt.Spawn(t.Context(), "true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{}}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v, %v", p, err)
	}
	other := harness.Create(t, runtime.Options{})
	wait(t, onTerminal(t, other, "true").Process) // another runtime has separate terminals
	taker.Kill()
	wait(t, taker)
	wait(t, onTerminal(t, rt, "true").Process)
}

// A parked runtime runs a program on a terminal.
func TestTerminalOfParked(t *testing.T) {
	if !harness.Needs(t, runtime.FeaturePark) {
		return
	}
	for _, terminal := range []*runtime.Terminal{{}, nil} {
		rt := harness.CreateParked(t, runtime.Options{})
		p := spawnCode(t, rt, `console.log(process.pid + ' ' + (process.stdout.isTTY === true))`, runtime.SpawnOptions{Terminal: terminal})
		text, err := io.ReadAll(p.Stdout)
		if want := fmt.Sprintln(p.PID(), terminal != nil); err != nil || strings.ReplaceAll(string(text), "\r", "") != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
		wait(t, p)
	}
}
