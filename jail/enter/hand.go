package enter

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
)

// What Hand gives where the program does not speak as it should.
var (
	ErrUnexpected = errors.New("unexpected report of the entry program")
	ErrEnded      = errors.New("the entry program ended")
)

// The first number of a report, unless it is a step's.
const (
	reportSet     = 0
	reportArmed   = 0xffff_fffd
	reportListens = 0xffff_fffe
	reportCloned  = 0xffff_ffff
)

// The host's answers. They differ, so that the program can't mistake one that was
// written early for proof that the host lives.
const (
	answerMet   = 1
	answerAlive = 2
)

// Hand tells the program behind conn what to do and waits until its own program
// runs, or until nothing of it is left. It calls cloned with the pid of the child
// that Clone makes, once it is told; Await waits for that. A failed step is a
// [*StepError].
func Hand(conn *net.UnixConn, l List, cloned func(pid int) error) error {
	message, err := l.encode()
	if err != nil {
		return err
	}
	if err := write(conn, message); err != nil {
		return fmt.Errorf("hand over the list: %w", err)
	}
	outcome, told := ErrEnded, false
	var lost error
	for {
		number, value, file, err := ReadReport(conn)
		if file != nil {
			l.pass(file, conn)
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET): // reset: it had not read everything
			if outcome == nil && !told { // what had to tell was killed
				outcome = ErrEnded
			}
			return cmp.Or(lost, outcome)
		case errors.Is(err, syscall.EMFILE): // the rest is told as well, and be it later: which child there is
			lost = fmt.Errorf("read the report: %w", err)
			continue
		case err != nil:
			return fmt.Errorf("read the report: %w", err)
		}
		switch number {
		case reportSet:
			outcome = nil
		case reportListens:
		case reportCloned:
			told = true
			if err = cloned(int(value)); err == nil && l.awaits() {
				err = write(conn, []byte{answerMet})
			}
		case reportArmed:
			err = write(conn, []byte{answerAlive})
		default:
			outcome = l.stepError(number, syscall.Errno(value))
		}
		if err != nil {
			return err
		}
	}
}

func (l *List) awaits() bool {
	return slices.ContainsFunc(l.Steps, func(s Step) bool { return s.op == opAwait })
}

// write makes no error of a program that ended early: it says why.
func write(conn io.Writer, b []byte) error {
	_, err := conn.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// pass gives the filter's listener to whom it is for.
func (l *List) pass(listener *os.File, conn *net.UnixConn) {
	if l.Listening == nil {
		listener.Close()
		return
	}
	l.Listening(listener, conn)
}
