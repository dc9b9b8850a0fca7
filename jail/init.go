package jail

import goruntime "runtime"

// The main goroutine keeps the main thread to itself from here on, as
// runtime.LockOSThread documents for package inits. Starting a jail takes threads
// that enter its mount namespace and end with their goroutine. Go can't end the main
// thread: had it taken part, it would stay in there, and with it /proc/self of this
// process.
func init() { goruntime.LockOSThread() }
