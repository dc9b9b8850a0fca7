package bundle

import (
	"io/fs"
	"syscall"
	"time"
)

func atime(info fs.FileInfo) time.Time {
	st := info.Sys().(*syscall.Stat_t) // on Linux
	return time.Unix(st.Atim.Unix())
}

func umask(mask int) (old int) { return syscall.Umask(mask) }
