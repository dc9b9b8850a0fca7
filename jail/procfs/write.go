package procfs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The files that Write makes besides the rows with other sources than Kernel. An
// entry is hidden by a mount of one of these.
const (
	EmptyFile   = "file"
	EmptyFolder = "folder"
)

// Facts are what the files say of the jail.
type Facts struct {
	Hostname string
	Memory   int64   // bytes that its runs have; 0: all of the machine's
	CPUs     float64 // processors that its runs keep busy; 0: all of the machine's
}

// Write fills a folder with what is mounted over a jail's /proc: the rows of [Shown]
// and, below sys, those of [Settings]. For the kernel's own it makes an empty file to
// mount it on. Settings that the host does not have are left out.
//
// Preconditions: the umask is 0.
func Write(dir string, f Facts) error {
	processors, err := someProcessors(f.CPUs)
	if err != nil {
		return err
	}
	stat, err1 := makeStat(processors)
	meminfo, err2 := makeMeminfo(f.Memory)
	cpuinfo, err3 := makeCPUInfo(len(processors))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	made := map[string]string{
		"kernel/domainname":  "(none)\n",
		"kernel/hostname":    f.Hostname + "\n",
		"net/core/somaxconn": "4096\n", // of every new network namespace since Linux 5.4
	}
	w := writer{dir: dir}
	w.file("cpuinfo", cpuinfo)
	w.file("meminfo", meminfo)
	w.file("stat", stat)
	w.file(EmptyFile, "")
	w.folder(EmptyFolder)
	for _, r := range Settings {
		text := made[r.Name]
		if r.From == Copied {
			var err error
			if text, err = readFile("/proc/sys/" + r.Name); errors.Is(err, os.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
		}
		w.folder(filepath.Dir("sys/" + r.Name))
		w.file("sys/"+r.Name, text)
	}
	return w.err
}

// writer makes files that nobody may change, until one fails.
type writer struct {
	dir  string
	made map[string]bool
	err  error
}

func (w *writer) folder(name string) {
	if name == "." || w.made[name] {
		return
	}
	w.folder(filepath.Dir(name))
	if w.made == nil {
		w.made = map[string]bool{}
	}
	w.made[name] = true
	if w.err == nil {
		w.err = os.Mkdir(filepath.Join(w.dir, name), 0o555)
	}
}

func (w *writer) file(name, text string) {
	if w.err == nil {
		w.err = writeFile(filepath.Join(w.dir, name), text)
	}
}

// writeFile makes a file. It does without os.File, which asks the poller in vain.
func writeFile(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	if text != "" {
		_, err = unix.Write(fd, []byte(text))
	}
	return os.NewSyscallError("write", errors.Join(err, unix.Close(fd)))
}

// readFile reads a short file, as writeFile writes one.
func readFile(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	text := make([]byte, 4096)
	n, err := unix.Read(fd, text)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return "", &os.PathError{Op: "read", Path: path, Err: err}
	}
	return string(text[:n]), nil
}
