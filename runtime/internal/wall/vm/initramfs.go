package vm

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// agentPath is where the machine's kernel finds gaol.
const agentPath = "/gaol"

// writeInitramfs writes the machine's first files: an archive of modules, and one of gaol's program. The kernel unpacks both.
func writeInitramfs(path, modules, gaol string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err = out.Chmod(0o644); err == nil { // whatever the umask, because QEMU reads it as another user
		_, err = copyFile(out, modules)
	}
	if err == nil {
		err = writeAgent(out, gaol)
	}
	return errors.Join(err, out.Close())
}

func copyFile(out io.Writer, path string) (int64, error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return io.Copy(out, in)
}

// writeAgent writes an archive of cpio's format newc: a head, a name and the content, each of them padded to 4 bytes.
func writeAgent(out *os.File, gaol string) error {
	info, err := os.Stat(gaol)
	if err != nil {
		return err
	}
	const mode = unix.S_IFREG | 0o755
	if _, err := io.WriteString(out, head(agentPath, mode, info.Size())); err != nil {
		return err
	}
	switch n, err := copyFile(out, gaol); {
	case err != nil:
		return err
	case n != info.Size():
		return fmt.Errorf("%s has changed", gaol)
	}
	_, err = io.WriteString(out, padding(info.Size())+head("TRAILER!!!", 0, 0))
	return err
}

// head is the head and the name of an entry, see "initramfs buffer format" of the kernel's documentation.
func head(name string, mode, size int64) string {
	text := "070701"
	for _, field := range []int64{0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, int64(len(name) + 1), 0} {
		text += fmt.Sprintf("%08X", field)
	}
	text += name + "\x00"
	return text + padding(int64(len(text)))
}

// padding fills up a number of bytes to a multiple of 4.
func padding(n int64) string { return "\x00\x00\x00"[:-n&3] }
