package jail

import (
	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/procfs"
)

// writeProc makes what procSteps mount over the jail's /proc. It is a read-only mount,
// and so are all that are made of it.
//
// Preconditions: those of stage.
func writeProc(s *Spec) error {
	umask := unix.Umask(0) // the thread's own: see stage
	defer unix.Umask(umask)
	if err := procfs.Write(stageProc, procfs.Config{Hostname: s.Hostname, Memory: s.Limits.Memory, CPUs: s.Limits.CPUs}); err != nil {
		return err
	}
	return remount(stageProc, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC})
}

// procSteps mount the jail's /proc and hide what package procfs does not list.
func (s *Spec) procSteps() []enter.Step {
	const (
		proc  = stageRoot + "/proc"
		flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	)
	steps := []enter.Step{enter.Mount("proc", proc, "proc", flags, s.procOptions())}
	for _, r := range procfs.Sysctls {
		if r.Source == procfs.Kernel { // the namespaces' own, which the mount of sys takes along
			steps = append(steps, enter.Mount(proc+"/sys/"+r.Name, stageProc+"/sys/"+r.Name, "", unix.MS_BIND, ""))
		}
	}
	var shown []string
	for _, r := range procfs.RootEntries {
		if r.Source == procfs.Generated {
			steps = append(steps, enter.Mount(stageProc+"/"+r.Name, proc+"/"+r.Name, "", unix.MS_BIND|unix.MS_REC, ""))
		}
		shown = append(shown, r.Name)
	}
	return append(steps, enter.HideEntries(proc, shown, stageProc+"/"+procfs.EmptyFile, stageProc+"/"+procfs.EmptyFolder))
}

// procOptions has a guest see, of other processes, those that it may trace: with a
// ruleset on, which makes a domain of a run, that is no other run's.
func (s *Spec) procOptions() string {
	if s.HideProcesses {
		return "hidepid=2" // invisible
	}
	return ""
}
