package jail

import (
	"os"
	"strconv"
	"strings"
)

// guestPID returns a process's pid in the innermost of its pid namespaces, which the kernel
// lists last, or 0 if the process does not exist.
//
// Preconditions: the process has not been waited for, so its pid is still its own.
func guestPID(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text), "\nNSpid:") // the name, which the guest can set, has no line break: proc(5)
	line, _, _ = strings.Cut(line, "\n")
	n, _ := strconv.Atoi(line[strings.LastIndexByte(line, '\t')+1:])
	return n
}
