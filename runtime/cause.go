package runtime

import (
	"bytes"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail"
)

// What a run that gaol killed reports.
const (
	killedCode   = 128 + int(syscall.SIGKILL)
	killedSignal = "SIGKILL"
)

// conclude fills in how the run ended. killed is why gaol ended it, if it did.
// stderrTail is the end of a standard error that is longer than what was captured.
func conclude(res *Result, killed Cause, exit jail.Exit, stderrTail []byte) {
	res.ExitCode = exit.Code
	if exit.Signal != 0 {
		res.ExitCode = 128 + int(exit.Signal)
		res.Signal = unix.SignalName(exit.Signal)
	}
	res.Usage = Usage{CPU: exit.Usage.CPU, PeakMemory: exit.Usage.PeakMemory, PeakPids: exit.Usage.PeakPids}
	res.Cause = causeOf(killed, exit, slices.Concat(res.Stderr, stderrTail))
	if res.ExitCode == 0 || res.Signal != "" || res.Cause != CauseNone && res.Cause != CausePids {
		res.Error = nil // that it was caught, or came before its end, the guest can't have known
	}
}

// causeOf says why a run ended. Where gaol did not end it, memory comes first: a
// program whose child died for memory mostly fails in a way of its own.
func causeOf(killed Cause, exit jail.Exit, stderr []byte) Cause {
	// Where it can't have a thread, libuv aborts.
	refused := exit.Code != 0 || exit.Signal == unix.SIGABRT
	byGaol := killed != CauseNone && exit.Signal == unix.SIGKILL
	switch {
	case byGaol:
		return killed
	case exit.Uncharged, exit.Usage.OOMKills > 0:
		return CauseMemory
	case heapFull(exit, stderr):
		return CauseMemory
	case refused && exit.Usage.PidsRefused > 0:
		return CausePids
	case exit.Signal != 0:
		return CauseSignal
	}
	return CauseNone
}

// heapFull reports whether Node gave up because its heap, which is a little
// smaller than the run's memory, was full. V8 aborts then, and says why on
// stderr. A program can fake that, and learns nothing by it.
func heapFull(exit jail.Exit, stderr []byte) bool {
	return exit.Signal == unix.SIGABRT && bytes.Contains(stderr, []byte("JavaScript heap out of memory"))
}
