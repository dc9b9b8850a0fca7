package jail

import (
	"os"
	goruntime "runtime"

	"github.com/opencontainers/runc/libcontainer"

	_ "github.com/opencontainers/cgroups/devices"           // device rules of cgroups
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // joins the namespaces before Go starts
)

// libcontainer starts the processes of a jail by executing this program again,
// with "init" as its argument and the variable below set.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init() // does not return
	}
	// The main goroutine keeps the main thread to itself from here on, as
	// runtime.LockOSThread documents for package inits. Starting a jail takes
	// threads that enter its mount namespace and end with their goroutine. Go
	// can't end the main thread: had it taken part, it would stay in there, and
	// with it /proc/self of this process.
	goruntime.LockOSThread()
}
