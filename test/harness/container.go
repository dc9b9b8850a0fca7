package harness

import "gaol/runtime"

// ContainerErrno is a guest's errno for a form of a system call that no ordinary program needs,
// and that a run's filter reports and refuses with the errno native: in a container, the
// container's own filter refuses it first, with ENOSYS, and nothing is reported.
func ContainerErrno(native string) string {
	if InContainer() {
		return "ENOSYS"
	}
	return native
}

// InContainer reports whether IsolationVar names an OCI runtime.
func InContainer() bool {
	kind, _ := Isolation()
	return kind == runtime.IsolationOCI
}
