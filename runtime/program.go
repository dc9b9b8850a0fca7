package runtime

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/vfs"
)

// program is the text that a run's prelude reads. guest/prelude.cjs draws the
// format.
type program struct {
	name    string // file name in the working directory
	preload string // the flag of Node that loads the prelude
	text    []byte
}

// A format is what a file name's ending says: Node's name for it, and the flag that
// preloads for its loader. With --import the main module is an ES module's even if
// its text is not, and require.main is undefined.
type format struct{ name, preload string }

var (
	esModule = format{"module", "--import"}
	typed    = format{"module-typescript", "--import"}
	formats  = map[string]format{
		".mjs": esModule, ".js": esModule,
		".mts": typed, ".ts": typed,
		".cjs": {"commonjs", "--require"},
	}
)

func newProgram(code, name string, dir vfs.Path, valueLimit int64, hasValue bool) (*program, error) {
	if name == "" {
		name = defaultName
	}
	format, known := formats[path.Ext(name)]
	if !known || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
		return nil, fmt.Errorf("option Name: %q is no file name that ends in .mjs, .js, .cjs, .mts or .ts", name)
	}
	if len(code) > maxProgram {
		return nil, fmt.Errorf("the program has %d bytes, the limit is %d", len(code), maxProgram)
	}
	if !hasValue {
		valueLimit = 0
	}
	file := string(dir.Join(name))
	if !utf8.ValidString(file) {
		return nil, fmt.Errorf("the program's path %q is not UTF-8", file)
	}
	head, err := json.Marshal(struct {
		Path   string `json:"path"`
		Format string `json:"format"`
		Value  int64  `json:"value"`
	}{file, format.name, valueLimit})
	if err != nil {
		return nil, err
	}
	text := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	return &program{name, format.preload, append(append(text, head...), code...)}, nil
}

// open returns the program as a sealed memory file: nobody can change it while it
// is read.
func (p *program) open() (*os.File, error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err := f.Write(p.text); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), f.Close())
	}
	return f, nil
}
