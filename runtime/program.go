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

// formats are Node's names for what a file name's ending says.
var formats = map[string]string{
	".mjs": "module", ".js": "module",
	".mts": "module-typescript", ".ts": "module-typescript",
	".cjs": "commonjs",
}

// programOptions say what a program is given.
type programOptions struct {
	name  string // empty: main.mjs
	dir   vfs.Path
	value int64 // the most bytes of a value; 0: it returns none

	globals   *globals
	arguments int64 // the most bytes of a call's
	evaluate  *evaluateHead
	context   *logBounds
}

// head is what the guest's half reads first; guest/program.cjs draws it.
type head struct {
	Wire      int           `json:"wire"`
	Path      string        `json:"path"`
	Format    string        `json:"format"`
	Value     int64         `json:"value"`
	Globals   string        `json:"globals,omitempty"`
	Functions [][]string    `json:"functions,omitempty"`
	Args      int64         `json:"args,omitempty"`
	Evaluate  *evaluateHead `json:"evaluate,omitempty"`
	Context   *logBounds    `json:"context,omitempty"`
}

func newProgram(code string, o programOptions) (*program, error) {
	if o.name == "" {
		o.name = defaultName
	}
	format, known := formats[path.Ext(o.name)]
	if !known || strings.ContainsAny(o.name, "/\x00") || len(o.name) > 255 {
		return nil, fmt.Errorf("option Name: %q is no file name that ends in .mjs, .js, .cjs, .mts or .ts", o.name)
	}
	if len(code) > maxProgram {
		return nil, fmt.Errorf("the program has %d bytes, the limit is %d", len(code), maxProgram)
	}
	file := string(o.dir.Join(o.name))
	if !utf8.ValidString(file) {
		return nil, fmt.Errorf("the program's path %q is not UTF-8", file)
	}
	h := head{Wire: wire.Version, Path: file, Format: format, Value: o.value, Evaluate: o.evaluate, Context: o.context}
	p := &program{name: o.name, value: o.value}
	if o.globals != nil {
		var err error
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
	p.text = append(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), code...)
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
