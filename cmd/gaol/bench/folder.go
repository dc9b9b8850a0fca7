package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const folderPrefix = "gaol-bench-"

// newFolder creates the working directory of bare Node in parent. Its name contains the process id, so that a later
// gaol bench can remove it if this process is killed.
func newFolder(parent string) (string, error) {
	left, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, path := range left {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), folderPrefix), "-")
		if pid, err := strconv.Atoi(id); err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = os.RemoveAll(path) // fails if it belongs to another user
		}
	}
	return os.MkdirTemp(parent, fmt.Sprintf("%s%d-", folderPrefix, os.Getpid()))
}
