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

// BootID is the path below /proc of the boot's id. Of all entries, only this one identifies the machine.
const BootID = "sys/kernel/random/boot_id"

// Config defines the contents of the files.
type Config struct {
	Hostname string
	Memory   int64   // bytes; 0: all of the machine's
	CPUs     float64 // processors, rounded up; 0: all of the machine's
}

// Write fills a folder with the files that are mounted over a jail's /proc: the entries of
// [RootEntries] and, below sys, of [Sysctls]. For the kernel's own entries it makes an empty
// file as the mount point. It omits sysctls that do not exist on the host.
//
// Preconditions: the umask is 0.
func Write(dir string, c Config) error {
	cpuinfo, err1 := readCPUInfo()
	processors, cpuinfo := limitProcessors(cpuinfo, c.CPUs)
	stat, err2 := makeStat(processors)
	meminfo, err3 := makeMeminfo(c.Memory)
	bootID, err4 := kernfile.ReadFile("/proc/sys/kernel/random/uuid") // the kernel makes a new one for each reader
	err := errors.Join(err1, err2, err3, err4, os.Mkdir(filepath.Join(dir, EmptyFolder), 0o555))
	if err != nil {
		return err
	}
	files := map[string]string{
		"cpuinfo": cpuinfo, "meminfo": meminfo, "stat": stat, EmptyFile: "",
		"sys/kernel/domainname":  "(none)\n",
		"sys/kernel/hostname":    c.Hostname + "\n",
		BootID:                   string(bootID),
		"sys/net/core/somaxconn": "4096\n", // of every new network namespace since Linux 5.4
	}
	if err := addSysctls(files); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o555), os.WriteFile(path, []byte(text), 0o444)); err != nil {
			return err
		}
	}
	return nil
}

// addSysctls adds copies of the host's sysctls, and mount points for the kernel's own entries.
func addSysctls(files map[string]string) error {
	for _, e := range Sysctls {
		var text []byte
		var err error
		switch e.Source {
		case Generated:
			continue
		case Copied:
			text, err = kernfile.ReadFile("/proc/sys/" + e.Name)
		}
		if err == nil {
			files["sys/"+e.Name] = string(text)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
