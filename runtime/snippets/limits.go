package snippets

import (
	"cmp"

	"gaol/runtime"
)

// Limits returns the limits of a snippet's sandbox.
func Limits() runtime.Limits {
	l, def := Options{}.sandbox().Limits, runtime.DefaultLimits()
	l.Memory, l.CPUs, l.Disk = cmp.Or(l.Memory, def.Memory), cmp.Or(l.CPUs, def.CPUs), cmp.Or(l.Disk, def.Disk)
	return l
}
