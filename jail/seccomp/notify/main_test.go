package notify

import (
	"encoding/json"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// A filter can't be removed, so a copy of the test binary loads it and sends its listener
// over a socket.

const (
	helperEnv  = "GAOL_NOTIFY_HELPER"
	helperConn = 3
)

// order is the copy's input, in its environment, which an execve keeps.
type order struct {
	Filter  []byte // nil: the copy runs under the filter that it has
	Calls   []call
	Times   int      // how often each call is made; 0 is once
	Reports int      // number of bytes to send before the first execve
	Execute []string // paths of programs to execute, until one succeeds
	Then    *order   // input of the executed program
	Sleep   bool     // at the end
}

// call is a system call. Argument At points to the path, if it has one.
type call struct {
	Nr   uintptr
	Args [6]uintptr
	Path string
	At   int
}

func TestMain(m *testing.M) {
	if text := os.Getenv(helperEnv); text != "" {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		help(o)
		return
	}
	goleak.VerifyTestMain(m)
}

func help(o order) {
	if o.Filter != nil {
		unix.CloseOnExec(helperConn)
		fd, err := load(o.Filter)
		if err != nil {
			panic(err)
		}
		if err := unix.Sendmsg(helperConn, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
			panic(err)
		}
		unix.Close(fd)
	}
	var errnos []syscall.Errno
	for _, c := range o.Calls {
		for range max(1, o.Times) {
			errnos = append(errnos, c.make())
		}
	}
	if o.Reports > 0 {
		if _, err := unix.Write(helperConn, make([]byte, o.Reports)); err != nil {
			panic(err)
		}
	}
	then, _ := json.Marshal(o.Then)
	for _, path := range o.Execute {
		err := unix.Exec(path, []string{"program"}, []string{helperEnv + "=" + string(then)})
		errnos = append(errnos, err.(syscall.Errno))
	}
	if err := json.NewEncoder(os.Stdout).Encode(errnos); err != nil {
		panic(err)
	}
	if o.Sleep {
		time.Sleep(time.Minute)
	}
}

func (c call) make() syscall.Errno {
	if c.Path != "" {
		path := append([]byte(c.Path), 0)
		c.Args[c.At] = uintptr(address(path))
	}
	_, _, errno := unix.Syscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
	return errno
}
