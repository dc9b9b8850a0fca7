package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// A person uses gaol repl in a terminal. Afterwards the terminal has its old settings.
func TestREPL(t *testing.T) {
	bin := harness.Gaol(t)
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	globals := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(globals, []byte(`{"given": [1, 2]}`), 0o600); err != nil {
		t.Fatal(err)
	}

	d := openTerminal(t)
	was := d.settings(t)
	cmd := d.beginAs(t, bin, "repl", "--globals", globals)
	harness.Expect(t, d.screen, ", Node.js in a jail. Type .help for more information.\r\n")
	harness.Expect(t, d.screen, "> ")
	for _, step := range []struct{ keys, want string }{
		{"const answer = 6 * 7\r", "undefined\r\n"},
		{"[answer, given]\r", "[ 42, [ 1, 2 ] ]\r\n"},
		{"_[0] + 1\r", "43\r\n"},
		{"new Map([['a', 1n]])\r", "Map(1) { 'a' => 1n }\r\n"},
		{"function f() {\r", "... "},
		{"  return `a\r", "... "},
		{"b`\r", "... "},
		{"}\r", "undefined\r\n"},
		{"f()\r", "'a\\nb'\r\n"},
		{"console.log('one\\x1b[2Jtwo\\u202e'); process.stdout.write('raw\\n'); 1\r", "one\\x1b[2Jtwo\\u202e\r\n"},
		{"", "1\r\n"},
		{"throw new TypeError('no\\x07')\r", "Uncaught TypeError: no\\x07\r\n    at cell-"},
		{"answ\t + 1\r", "43\r\n"},
		{"Object.fromE\t.length\r", "1\r\n"},
		{"answer.\t", "toExponential"}, // lists completions
		{"\x15typed and abandoned(\x03", "^C\r\n"},
		{"[1,\r", "... "},
		{"\x03", "^C\r\n> "},
		{"answer\x1b[A\x1b[A\x1b[A\x1b[B\x1b[B\x1b[B\r", "42\r\n"},
		{"setTimeout(() => console.log('later'), 300); 2\r", "2\r\n"},
		{"typed me", "later\r\n> typed me"}, // is printed above the line being typed
		{"\x15console.log('up'); for (;;);\r", "up\r\n"},
		{"\x03", "Interrupted.\r\n> "},
		{"console.log('up'); await new Promise(r => setTimeout(r, 60000))\r", "up\r\n"},
		{"\x03", "Interrupted.\r\n> "},
		{"answer\r", "42\r\n"},
		{"await new Promise(r => setTimeout(r, 10)); console.log('up'); for (;;);\r", "up\r\n"},
		{"\x03", "Interrupted.\r\n> "},
		{"setTimeout(() => { console.log('up'); for (;;); }, 10); await new Promise(r => setTimeout(r, 60000))\r", "up\r\n"},
		{"\x03", "is lost\r\n"},
		{"", "another context begins, without the variables\r\n"},
		{"typeof answer + given.length\r", "'undefined2'\r\n"},
		{".help\r", "Ctrl-C"},
		{" secret = 1\r", "1\r\n"},
		{"\x1b[200~let p = 1\rp + 1\r\x1b[201~", "2\r\n"}, // a paste
	} {
		if step.keys != "" {
			d.press(t, step.keys)
		}
		harness.Expect(t, d.screen, step.want)
	}
	if now := d.settings(t); now.Lflag&unix.ICANON != 0 {
		t.Error("it does not take keys as they come")
	}
	d.press(t, "\x04")
	if got := code(t, cmd); got != 0 {
		t.Errorf("exit status %d", got)
	}
	if now := d.settings(t); !reflect.DeepEqual(was, now) {
		t.Errorf("the terminal is %+v, was %+v", now, was)
	}

	path := filepath.Join(state, "gaol", "repl_history")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}
	kept, _ := os.ReadFile(path)
	if !strings.HasPrefix(string(kept), "const answer = 6 * 7\n[answer, given]\n") || strings.Contains(string(kept), "secret") {
		t.Errorf("it has %s", kept)
	}

	// The next session reads the history.
	d = openTerminal(t)
	cmd = d.beginAs(t, bin, "repl")
	harness.Expect(t, d.screen, "> ")
	d.press(t, "\x1b[A\x1b[A\r")
	harness.Expect(t, d.screen, "let p = 1\r\nundefined\r\n")
	d.press(t, "process.exit(7)\r")
	if got := code(t, cmd); got != 7 {
		t.Errorf("after process.exit(7): exit status %d", got)
	}
	d = openTerminal(t)
	cmd = d.beginAs(t, bin, "repl", "--no-history")
	harness.Expect(t, d.screen, "> ")
	d.press(t, "\x1b[A'unkept'\r")
	harness.Expect(t, d.screen, "'unkept'\r\n'unkept'\r\n")
	d.press(t, ".exit\r")
	if got := code(t, cmd); got != 0 {
		t.Errorf("after .exit: exit status %d", got)
	}
	if kept, _ := os.ReadFile(path); strings.Contains(string(kept), "unkept") {
		t.Errorf("it has %s", kept)
	}
}

// The terminal has its old settings however gaol repl ends.
func TestREPLEnds(t *testing.T) {
	bin := harness.Gaol(t)
	t.Setenv("TERM", "xterm")
	for name, tc := range map[string]struct {
		code string
		end  func(*exec.Cmd)
		want int
	}{
		"terminated at the prompt": {"'up'", func(c *exec.Cmd) { _ = c.Process.Signal(unix.SIGTERM) }, 143},
		"terminated amid a cell":   {"console.log('up'); for (;;);", func(c *exec.Cmd) { _ = c.Process.Signal(unix.SIGTERM) }, 143},
		"interrupted from outside": {"console.log('up'); await new Promise(r => setTimeout(r, 60000))", func(c *exec.Cmd) { _ = c.Process.Signal(unix.SIGINT) }, 130},
	} {
		d := openTerminal(t)
		was := d.settings(t)
		cmd := d.beginAs(t, bin, "repl", "--no-history")
		harness.Expect(t, d.screen, "> ")
		d.press(t, tc.code+"\r")
		harness.Expect(t, d.screen, "\r\n")
		harness.Expect(t, d.screen, "up")
		time.Sleep(50 * time.Millisecond)
		tc.end(cmd)
		if got := code(t, cmd); got != tc.want {
			t.Errorf("%s: exit status %d, want %d", name, got, tc.want)
		}
		if now := d.settings(t); !reflect.DeepEqual(was, now) {
			t.Errorf("%s: the terminal is %+v, was %+v", name, now, was)
		}
	}
}
