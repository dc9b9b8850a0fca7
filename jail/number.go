package jail

import (
	"os"
	"strconv"
	"strings"
)

// guestPID is a process's number in the innermost of its pid namespaces: the last of
// those that the kernel lists. Zero: there is no such process.
//
// Preconditions: nobody has waited for it, and so its number is no other's.
func guestPID(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text), "\nNSpid:") // the name, which is the guest's, has no line break: proc(5)
	line, _, _ = strings.Cut(line, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[len(fields)-1])
	return n
}
