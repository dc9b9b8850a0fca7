package jail

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"gaol/jail/landlock"
)

// Ruleset makes a Landlock ruleset for processes of the jail, see Command.Ruleset. Its
// rules grant what is in the tree now: a folder that is made later in the place of
// another has none of its grants. The caller closes the file. Errors are those of
// [landlock.Ruleset.Make].
func (j *Jail) Ruleset(r *landlock.Ruleset) (*os.File, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed { // pid 1 may be gone, and its number another's
		return nil, ErrClosed
	}
	root, err := openFD("/proc/"+strconv.Itoa(j.pid1.PID())+"/root", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, stepError("open", "root", err)
	}
	defer root.Close()
	return r.Make(root)
}
