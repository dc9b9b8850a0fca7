package harness

import "gaol/runtime"

// InContainer reports whether IsolationVar names an OCI runtime.
func InContainer() bool {
	kind, _ := Isolation()
	return kind == runtime.IsolationOCI
}
