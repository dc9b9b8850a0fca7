package jail

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gaol/jail/enter"
	"gaol/jail/seccomp"
)

// tinyImage creates an image with a static busybox, the reaper and the entry program.
var tinyImage = sync.OnceValues(func() (string, error) {
	root, err := os.MkdirTemp("", "gaol-jail-test-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(root, 0o755); err != nil {
		return "", err
	}
	for _, d := range []string{"proc", "dev", "tmp", "bin", "etc", filepath.Dir(enter.Path)[1:]} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky); err != nil {
		return "", err
	}
	for from, to := range map[string]string{"/bin/busybox": "/bin/busybox", "/usr/bin/catatonit": enter.Reaper} {
		if err := copyProgram(from, filepath.Join(root, to)); err != nil {
			return "", err
		}
	}
	for _, applet := range []string{"sh", "cat", "id", "ls", "sleep", "touch", "mkdir", "dd", "true", "readlink", "kill", "chmod", "stat"} {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", applet)); err != nil {
			return "", err
		}
	}
	if err := compile(filepath.Join(root, "bin/lock"), lockSource); err != nil {
		return "", err
	}
	return root, compileEnter(root, enter.Source)
})

// compileEnter replaces an image's entry program by a rename: a file that is being
// executed can't be written.
func compileEnter(image, source string) error {
	path := filepath.Join(image, enter.Path)
	if err := compile(path+".new", source); err != nil {
		return err
	}
	return errors.Join(os.Chmod(path+".new", 0o711), os.Rename(path+".new", path))
}

func compile(to, source string) error {
	cc := exec.Command("cc", "-x", "c", "-static", "-O2", "-Wall", "-Wextra", "-Werror", "-o", to, "-")
	cc.Stdin = strings.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		return &StepError{Step: "compile", Target: string(out), Err: err}
	}
	return nil
}

// lockSource locks the files in its arguments. A child keeps them locked.
const lockSource = `
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++)
		if (flock(open(argv[i], O_RDONLY), LOCK_EX | LOCK_NB))
			return 1;
	if (fork() == 0)
		sleep(3600);
	return 0;
}`

func copyProgram(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

func testSpec(t testing.TB) Spec {
	t.Helper()
	image, err := tinyImage()
	if err != nil {
		t.Fatal(err)
	}
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Tree: Tree{
			Image:  image,
			Layer:  []File{{Path: "/etc/gaol/note", Mode: 0o644, Data: []byte("from the layer\n")}},
			Dirs:   []string{"/work"},
			Disk:   1 << 20,
			Inodes: 64,
		},
		Hostname:     "cell",
		Reaper:       []string{enter.Reaper, "-P"},
		Filter:       filter,
		CgroupParent: cgroupParent,
		StateDir:     stateDir,
	}
}
