package runtime

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits returns the limits in force: Options.Limits, with the defaults for zero fields.
// Files is less than its default where the host process itself may have fewer open files.
func (rt *NodeRuntime) Limits() Limits { return rt.opts.limits }

// HostLimitError says that a field of Limits asks for more than the host process itself may have.
type HostLimitError struct {
	Limit string // the field's name
	Value int64  // what it asks for
	Most  int64  // what the host process may have
	Least int64  // what a run needs
}

// Error names the field, the process's own limit, and how to raise that.
func (e *HostLimitError) Error() string {
	return fmt.Sprintf("limit %s: %d is more than %d, the hard limit of this process (RLIMIT_NOFILE); raise that with `ulimit -Hn`, or LimitNOFILE= of a service", e.Limit, e.Value, e.Most)
}

// fitHost is fit with this process's own limit.
func (l *Limits) fitHost(asked Limits) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	return l.fit(asked, files.Max)
}

// fit lowers the default of Files to the most that the host process may pass on. It refuses
// a value that was asked for and is more than that.
func (l *Limits) fit(asked Limits, most uint64) error {
	if asked.Files == 0 && most < uint64(l.Files) {
		l.Files = max(int64(most), minFiles)
	}
	if uint64(l.Files) > most {
		return &HostLimitError{"Files", l.Files, int64(most), minFiles}
	}
	return nil
}
