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

// A filter can't be taken off, so that a copy of the test binary wears it. It has
// one end of a socket, by which it gives its listener away.

const (
	helperEnv  = "GAOL_NOTIFY_HELPER"
	helperConn = 3
)

// order is what the copy is told to do, in its environment, so that it is told the
// same after an execve.
type order struct {
	Filter  []byte // none: it runs as a program under the filter that it has
	Calls   []call
	Times   int      // that each call is made, and once if 0
	Reports int      // bytes that it sends before it executes
	Execute []string // paths of programs, tried in turn in place of the calls
	Then    *order   // is what the program is told
	Sleep   bool     // in the end
}

// call names its path, if it has any, in argument At.
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
