package enter

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ReadReport reads the two numbers of a report and the file that may come with it, which
// the caller must close. At the end of the reports it returns io.EOF.
func ReadReport(conn *net.UnixConn) (number, value uint32, file *os.File, err error) {
	var b [8]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, flags, _, err := conn.ReadMsgUnix(b[:], oob)
	if err == nil && n == 0 || errors.Is(err, io.EOF) {
		return 0, 0, nil, io.EOF // unwrapped: net adds an OpError
	}
	if err == nil {
		file, err = fileOf(oob[:oobn])
	}
	if err == nil && flags&unix.MSG_CTRUNC != 0 { // a file was sent, but no descriptor was free
		err = os.NewSyscallError("recvmsg", unix.EMFILE)
	}
	if err == nil {
		if _, err = io.ReadFull(conn, b[n:]); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	return binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:]), file, err
}

// fileOf returns the file of a control message, or nil.
func fileOf(control []byte) (*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	// ReadMsgUnix has set close-on-exec.
	return os.NewFile(uintptr(fds[0]), "sent by a guest's launcher"), nil
}

// SocketPair returns a pair of connected sockets. Reading the first does not block a
// thread; the second is for another process.
func SocketPair(kind int) (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(fds[0]), "launcher")
	defer file.Close() // FileConn duplicates it
	other := os.NewFile(uintptr(fds[1]), "launcher")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, nil, errors.Join(err, other.Close())
	}
	return conn.(*net.UnixConn), other, nil
}
