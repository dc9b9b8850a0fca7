package service

import (
	"strings"
)

// isOfHost reports whether it is a folder of the server's machine.
func isOfHost(n NodeModules) bool {
	return n.HostPath != "" && !strings.HasPrefix(n.HostPath, snapshotScheme)
}
