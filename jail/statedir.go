package jail

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"gaol/jail/step"
)

// DefaultStateDir is where live jails are registered.
const DefaultStateDir = "/run/gaol"

// The state folder:
//
//	jails/N.slot    the claim of the process that holds slot N, locked by it
//	stage           where the thread of each jail mounts its tree; appears empty to others
func jailsDir(stateDir string) string { return filepath.Join(stateDir, "jails") }
func stageDir(stateDir string) string { return filepath.Join(stateDir, "stage") }

var errNotOurs = errors.New("not a folder that only this user can write to")

// makeStateDirs makes the folders that all jails share, independently of the umask.
func makeStateDirs(stateDir string) error {
	for _, dir := range []string{stateDir, jailsDir(stateDir), stageDir(stateDir)} {
		if err := makeStateDir(dir); err != nil {
			return step.Wrap("make", dir, err)
		}
	}
	return nil
}

func makeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	// Other users who could write there could make root follow their links.
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || int(owner) != os.Geteuid() || info.Mode()&0o022 != 0 {
		return errNotOurs
	}
	return os.Chmod(dir, 0o711)
}
