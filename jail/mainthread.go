package jail

import goruntime "runtime"

// init locks the main goroutine to the main thread, as runtime.LockOSThread documents for
// package inits. Starting a jail uses threads that enter a mount namespace and end with
// their goroutine. Go can't end the main thread: it would stay in that namespace, and so
// would /proc/self of this process.
func init() { goruntime.LockOSThread() }
