package procfs

import (
	"errors"
	"os"
	"path/filepath"

	"gaol/jail/kernfile"
)

// Write makes these in addition to the entries of other sources than Kernel. Mounted over an
// entry they hide it.
const (
	EmptyFile   = "file"
	EmptyFolder = "folder"
)

// Config is what the files report.
type Config struct {
	Hostname string
	Memory   int64   // bytes; 0: all of the machine's
	CPUs     float64 // processors, rounded up; 0: all of the machine's
}

// Write fills a folder with the files that are mounted over a jail's /proc: the entries of
// [RootEntries] and, below sys, those of [Sysctls]. For entries of the kernel's it makes an
// empty file as the mount point. It omits sysctls that the host does not have.
//
// Preconditions: the umask is 0.
func Write(dir string, c Config) error {
	processors, err := limitedProcessors(c.CPUs)
	if err != nil {
		return err
	}
	stat, err1 := makeStat(processors)
	meminfo, err2 := makeMeminfo(c.Memory)
	cpuinfo, err3 := makeCPUInfo(len(processors))
	w := writer{dir: dir, err: errors.Join(err1, err2, err3)}
	w.file("cpuinfo", cpuinfo)
	w.file("meminfo", meminfo)
	w.file("stat", stat)
	w.file(EmptyFile, "")
	w.folder(EmptyFolder)
	generated := map[string]string{
		"kernel/domainname":  "(none)\n",
		"kernel/hostname":    c.Hostname + "\n",
		"net/core/somaxconn": "4096\n", // of every new network namespace since Linux 5.4
	}
	for _, e := range Sysctls {
		w.sysctl(e, generated[e.Name])
	}
	return w.err
}

// sysctl makes the file of an entry with the host's value, if it is copied, or text.
func (w *writer) sysctl(e Entry, text string) {
	if e.Source == Copied {
		b, err := kernfile.ReadFile("/proc/sys/" + e.Name)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		w.err = errors.Join(w.err, err)
		text = string(b)
	}
	w.folder(filepath.Dir("sys/" + e.Name))
	w.file("sys/"+e.Name, text)
}

// writer makes read-only files until the first error.
type writer struct {
	dir string
	err error
}

func (w *writer) folder(name string) {
	if w.err == nil {
		w.err = os.MkdirAll(filepath.Join(w.dir, name), 0o555)
	}
}

func (w *writer) file(name, text string) {
	if w.err == nil {
		w.err = kernfile.CreateFile(filepath.Join(w.dir, name), text, 0o444)
	}
}
