package jail

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// The state folder:
//
//	jails/N.slot    the claim of the process that holds slot N, locked by it
//	stage           where each jail's own thread mounts its tree; empty to others
func jailsDir(stateDir string) string { return filepath.Join(stateDir, "jails") }
func stageDir(stateDir string) string { return filepath.Join(stateDir, "stage") }

var errNotOurs = errors.New("not a folder that only this user can write to")

// makeStateDirs makes the folders that all jails share, whatever the host's umask is.
func makeStateDirs(stateDir string) error {
	for _, dir := range []string{stateDir, jailsDir(stateDir), stageDir(stateDir)} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return stepError("make", dir, err)
		}
		// Whoever could write there could have root follow a link of theirs.
		info, err := os.Lstat(dir)
		if err != nil {
			return stepError("make", dir, err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || int(owner) != os.Geteuid() || info.Mode()&0o022 != 0 {
			return stepError("use", dir, errNotOurs)
		}
		if err := os.Chmod(dir, 0o711); err != nil {
			return stepError("make", dir, err)
		}
	}
	return nil
}
