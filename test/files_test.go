package test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxFile bounds the files of the repository: every clone downloads all that were ever committed.
const maxFile = 1 << 20

// No built program is committed.
func TestFileSizes(t *testing.T) {
	if _, err := os.Stat("../.git"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this is no clone")
	}
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("..", name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed, and not committed yet
		case err != nil:
			t.Fatal(err)
		case info.Size() > maxFile:
			t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), maxFile)
		}
	}
}
