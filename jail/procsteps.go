package jail

import (
	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
)

// procSteps mount the jail's /proc, and hide the entries that package procfs does not list.
func (s *Spec) procSteps() []enter.Step {
	const (
		proc  = mounts.Root + "/proc"
		made  = mounts.Proc
		flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	)
	options := ""
	if s.HideProcesses {
		options = "hidepid=2" // hides processes that the reader may not trace
	}
	steps := []enter.Step{enter.Mount("proc", proc, "proc", flags, options)}
	for _, r := range procfs.Sysctls {
		if r.Source == procfs.Kernel { // the kernel's entry, mounted in the files that replace sys
			steps = append(steps, enter.Mount(proc+"/sys/"+r.Name, made+"/sys/"+r.Name, "", unix.MS_BIND, ""))
		}
	}
	var shown []string
	for _, r := range procfs.RootEntries {
		if r.Source == procfs.Generated {
			steps = append(steps, enter.Mount(made+"/"+r.Name, proc+"/"+r.Name, "", unix.MS_BIND|unix.MS_REC, ""))
		}
		shown = append(shown, r.Name)
	}
	return append(steps, enter.HideEntries(proc, shown, made+"/"+procfs.EmptyFile, made+"/"+procfs.EmptyFolder))
}
