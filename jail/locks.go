package jail

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
)

// countLocks kills a run that holds too many locks.
func (w *memoryWatch) countLocks() {
	runs := w.byPID()
	held := map[*Process]int{}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return
	}
	defer f.Close()
	// The kernel goes through all locks from the first for each page that is read: it is
	// read no further than it takes to find a run.
	for lines := bufio.NewScanner(f); lines.Scan(); {
		p := runs[lockOwner(lines.Bytes())]
		if p == nil {
			continue
		}
		if held[p]++; held[p] == maxLocks {
			p.killForMemory()
			return // the others are counted as soon as there are more
		}
	}
}

// lockOwner reads the process of a line of /proc/locks such as
//
//	1: POSIX  ADVISORY  WRITE 1234 00:1a:5 0 EOF
//
// in which -> after the number marks a lock that is waited for. It is 0 if there is none.
func lockOwner(line []byte) int {
	fields := bytes.Fields(line)
	if len(fields) > 1 && string(fields[1]) == "->" {
		fields = fields[1:]
	}
	if len(fields) < 5 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[4]))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
