package jail

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
)

// checkFileLocks kills a run that holds too many file locks.
func (w *memoryWatch) checkFileLocks() {
	runs := w.byPID()
	held := map[*Process]int{}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return
	}
	defer f.Close()
	// For each page that is read, the kernel walks all locks from the first. So the file is
	// read only until one run is found.
	for lines := bufio.NewScanner(f); lines.Scan(); {
		p := runs[lockOwner(lines.Bytes())]
		if p == nil {
			continue
		}
		if held[p]++; held[p] == maxLocks {
			p.killForMemory()
			return // other runs are found when the memory grows again
		}
	}
}

// lockOwner returns the pid in a line of /proc/locks such as
//
//	1: POSIX  ADVISORY  WRITE 1234 00:1a:5 0 EOF
//
// or 0 if the line has none. "->" after the number marks a lock that is waited for.
func lockOwner(line []byte) int {
	fields := bytes.Fields(line)
	if len(fields) > 1 && string(fields[1]) == "->" {
		fields = fields[1:]
	}
	if len(fields) < 5 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[4]))
	if err != nil {
		return 0
	}
	return max(0, pid)
}
