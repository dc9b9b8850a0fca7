package docs

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gaol/test/harness"
)

// command is one command of a console block, with the output that the page shows.
type command struct{ text, output string }

// commands reads a block: a command begins with "$ ", continues in lines that begin with "> ",
// and is followed by its output.
func commands(b block) []command {
	var list []command
	continues := false
	for line := range strings.Lines(b.text) {
		text, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			list = append(list, command{text: text})
			continues = true
		case isMore && continues:
			list[len(list)-1].text += more
		case len(list) > 0:
			list[len(list)-1].output += line
			continues = false
		}
	}
	return list
}

// Console blocks of a page run in one folder, one after the other.
func TestConsoleBlocks(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			dir := t.TempDir()
			for _, b := range blocks(t, page) {
				if b.file != "" {
					writeFile(t, filepath.Join(dir, b.file), b.text)
				}
				if b.lang != "console" {
					continue
				}
				for _, c := range commands(b) {
					check(t, b, c, dir)
				}
			}
		})
	}
}

// check runs a command. Without output in the page, it must succeed; otherwise the output must
// be the same, except for … , which stands for any text.
func check(t *testing.T, b block, c command, dir string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", c.text)
	cmd.Dir = dir
	// gaol's cache of examples is the page's own. Go's remains the user's.
	caches, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "PATH="+shellPath(t, dir)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+dir+".cache",
		"GOCACHE="+cmp.Or(os.Getenv("GOCACHE"), filepath.Join(caches, "go-build")))
	out, err := cmd.CombinedOutput()
	if c.output == "" && err != nil {
		t.Errorf("%v: %s%v\n%s", b, c.text, err, out)
	}
	if pattern := strings.ReplaceAll(regexp.QuoteMeta(c.output), "…", "(?s:.*)"); c.output != "" && !regexp.MustCompile("^"+pattern+"$").Match(out) {
		t.Errorf("%v: %sprints\n%s\ninstead of\n%s", b, c.text, out, c.output)
	}
}

// shellPath returns a folder with the commands gaol and sudo, and makes bin/gaol in dir.
func shellPath(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "bin")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.Gaol(t), filepath.Join(path, "gaol")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(path, "sudo"), "#!/bin/sh\nexec \"$@\"\n")
	if err := os.Chmod(filepath.Join(path, "sudo"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
