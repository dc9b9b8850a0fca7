package runtime

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/internal/wire"
	"gaol/vfs"
)

// program is the text that a run's prelude reads. guest/prelude.cjs draws the
// format.
type program struct {
	name string // file name in the working directory
	text []byte

	value     int64 // the most bytes of a value
	functions []hostFunction
}

// programOptions say what a program is given.
type programOptions struct {
	name   string // empty: main.mjs or main.cjs
	format ModuleFormat
	dir    vfs.Path
	value  int64 // the most bytes of a value; 0: it returns none

	globals   *globals
	arguments int64 // the most bytes of a call's
	evaluate  *evaluateHead
	context   *contextHead
}

// head is what the guest's half reads first; guest/program.cjs draws it.
type head struct {
	Wire      int           `json:"wire"`
	Path      string        `json:"path"`
	Format    string        `json:"format"`
	Mapped    bool          `json:"mapped,omitempty"`
	Value     int64         `json:"value"`
	Globals   string        `json:"globals,omitempty"`
	Functions [][]string    `json:"functions,omitempty"`
	Args      int64         `json:"args,omitempty"`
	Evaluate  *evaluateHead `json:"evaluate,omitempty"`
	Context   *contextHead  `json:"context,omitempty"`
}

func newProgram(code string, o programOptions) (*program, error) {
	if len(code) > maxProgram {
		return nil, fmt.Errorf("the program has %d bytes, the limit is %d", len(code), maxProgram)
	}
	s, err := o.script(code)
	if err != nil {
		return nil, err
	}
	file := string(o.dir.Join(s.name))
	if !utf8.ValidString(file) {
		return nil, fmt.Errorf("the program's path %q is not UTF-8", file)
	}
	h := head{Wire: wire.Version, Path: file, Format: s.format, Mapped: s.mapped, Value: o.value, Evaluate: o.evaluate, Context: o.context}
	p := &program{name: s.name, value: o.value}
	if o.globals != nil {
		if h.Globals, err = o.globals.text(); err != nil {
			return nil, err
		}
		h.Args, p.functions = o.arguments, o.globals.functions
	}
	for _, f := range p.functions {
		h.Functions = append(h.Functions, f.path)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	p.text = append(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), s.code...)
	return p, nil
}

// open returns the program as a sealed memory file: nobody can change it while it
// is read.
func (p *program) open() (*os.File, error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	_, err = f.Write(p.text)
	if err == nil {
		err = f.Chmod(0) // other runs of the runtime can't open it by way of /proc
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), f.Close())
	}
	return f, nil
}
