package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd accepts the units without a warning.
func TestUnitsAreValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	program, err := os.Executable() // must exist
	if err != nil {
		t.Fatal(err)
	}
	serviceUnit, socketUnit := filepath.Join(dir, "gaol.service"), filepath.Join(dir, "gaol.socket")
	for file, text := range map[string]string{serviceUnit: ServiceUnit(program, "serve", "--config=/etc/a b%c"), socketUnit: SocketUnit("/run/gaol/gaol.sock", "root")} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", serviceUnit, socketUnit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"--socket=/run/s":   "--socket=/run/s",
		"--config=/etc/a b": `"--config=/etc/a b"`,
		"":                  `""`,
		"50%":               "50%%",
		"$HOME":             "$$HOME",
		`a"b\c`:             `"a\"b\\c"`,
		"a;b":               `"a;b"`,
		"a\nExecStart=b":    `a\nExecStart=b`,
	} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) = %s, want %s", word, got, want)
		}
	}
}

// A path does not add lines to the unit of the socketUnit.
func TestSocket(t *testing.T) {
	if text := SocketUnit("/run/%x", "devs"); !strings.Contains(text, "\nListenStream=/run/%%x\n") || !strings.Contains(text, "\nSocketGroup=devs\n") {
		t.Error(text)
	}
}
