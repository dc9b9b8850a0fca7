package jail

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func openTerminal(t *testing.T, j *Jail) *Terminal {
	t.Helper()
	term, err := j.OpenTerminal(TerminalSize{Rows: 30, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.Close)
	return term
}

// onTerminal runs a script on a terminal and returns its output.
func onTerminal(t *testing.T, j *Jail, script string) string {
	t.Helper()
	term := openTerminal(t, j)
	defer term.Close()
	p, read := start(t, j, script, func(c *Command) {
		c.Files, c.Terminal = []*os.File{term.Guest, term.Guest, term.Guest}, true
	})
	read()
	if exit, err := p.Wait(); err != nil || exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("%s: %+v, %v", script, exit, err)
	}
	term.Guest.Close()
	term.Kept.Close()
	text, err := io.ReadAll(term.Host)
	if !errors.Is(err, unix.EIO) { // how a terminal ends
		t.Errorf("%s: %v", script, err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\r\n", "\n")
}

func TestTerminal(t *testing.T) {
	j := newJail(t)
	for _, tc := range []struct{ script, want string }{
		{"busybox tty", "/dev/pts/0"},
		{"[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes", "yes"},
		{"busybox stty size", "30 100"},
		{"busybox stty size </dev/tty", "30 100"}, // the controlling terminal
		{"busybox stat -c '%u %g %a' /dev/pts/0", "1000 5 620"},
		{"echo /dev/pts/*", "/dev/pts/0 /dev/pts/ptmx"},
		{"busybox cut -d' ' -f8 /proc/self/stat | { read g; [ $g -gt 0 ] && echo foreground; }", "foreground"},
	} {
		if got := onTerminal(t, j, tc.script); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
	if got := output(t, j, "(: </dev/tty) 2>/dev/null || echo none"); got != "none" {
		t.Errorf("a process without a terminal has one: %s", got)
	}
}

func TestTerminalRefuses(t *testing.T) {
	j := newJail(t)
	for _, size := range []TerminalSize{{}, {Rows: 1}, {Cols: 1}} {
		if term, err := j.OpenTerminal(size); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%v: %v, %v", size, term, err)
		}
	}
	term := openTerminal(t, j)
	if err := term.Resize(TerminalSize{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("resize to nothing: %v", err)
	}
	var all []*Terminal
	for range 64 {
		next, err := j.OpenTerminal(TerminalSize{1, 1})
		if err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				t.Error(err)
			}
			break
		}
		all = append(all, next)
	}
	if len(all) != 63 {
		t.Errorf("%d terminals, and one before", len(all))
	}
	for _, next := range all {
		next.Close()
	}
	if next := openTerminal(t, j); next == nil {
		t.Error("what was closed can't be had again")
	}
	other := newJail(t)
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if _, err := other.OpenTerminal(TerminalSize{1, 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed jail: %v", err)
	}
}

func TestSignalAndPID(t *testing.T) {
	j := newJail(t)
	p, read := start(t, j, "trap 'echo got it; exit 3' USR1; echo $$; touch set; while :; do busybox sleep 0.01; done")
	if p.GuestPID() < 2 {
		t.Errorf("number %d", p.GuestPID())
	}
	output(t, j, "until [ -e set ]; do busybox sleep 0.01; done")
	if usage, err := p.Usage(); err != nil || usage.Memory == 0 || usage.CPU == 0 {
		t.Errorf("%+v, %v", usage, err)
	}
	if err := p.Signal(unix.SIGUSR1, false); err != nil {
		t.Error(err)
	}
	text := read()
	if exit, err := p.Wait(); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
	if number, rest, _ := strings.Cut(text, "\n"); rest != "got it\n" || number != strconv.Itoa(p.GuestPID()) {
		t.Errorf("%q, want number %d", text, p.GuestPID())
	}
	for _, group := range []bool{false, true} {
		if err := p.Signal(unix.SIGTERM, group); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("after the end: %v", err)
		}
	}
	if usage, err := p.Usage(); err != nil || usage != p.exit.Usage {
		t.Errorf("after the end: %+v, %v", usage, err)
	}
}

func TestSignalToGroup(t *testing.T) {
	for _, tc := range []struct {
		group        bool
		before, want string // output that the parent waits for
	}{{true, "until [ -e child ]; do busybox sleep 0.01; done; ", "child\nparent\n"}, {false, "", "parent\n"}} {
		j := newJail(t)
		p, read := start(t, j, "(trap 'echo child; touch child; exit' TERM; touch a; while :; do busybox sleep 0.01; done) & trap '"+tc.before+
			"echo parent; exit' TERM; touch b; while :; do busybox sleep 0.01; done")
		output(t, j, "until [ -e a ] && [ -e b ]; do busybox sleep 0.01; done")
		if err := p.Signal(syscall.SIGTERM, tc.group); err != nil {
			t.Error(err)
		}
		if got := strings.ReplaceAll(read(), "Terminated\n", ""); got != tc.want { // printed by the shell
			t.Errorf("group %v: %q", tc.group, got)
		}
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
}
