package jail

import (
	"bufio"
	"os"
	"strconv"
	"strings"
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
		p := runs[lockOwner(lines.Text())]
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
// or a number that no process has. "->" after the number marks a lock that is waited for.
func lockOwner(line string) int {
	fields := strings.Fields(strings.Replace(line, " -> ", " ", 1))
	if len(fields) < 5 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[4])
	return pid
}
