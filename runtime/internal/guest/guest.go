package guest

import (
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"

	"gaol/internal/kernfile"
	"gaol/runtime/internal/sandbox"

	"gaol/internal/wire"
)

// Paths of the files in a guest's file tree.
const (
	Dir     = "/usr/libexec/gaol"
	Prelude = Dir + "/prelude.cjs" // preloaded by every program
	Zygote  = Dir + "/zygote.cjs"  // preloaded by a zygote
)

//go:embed *.cjs
var files embed.FS

// startModules are the modules that each start needs, each after those that it requires.
var startModules = []string{"intrinsics.cjs", "values.cjs", "wire.cjs", "control.cjs", "failure.cjs", "program.cjs"}

// Files returns the JavaScript files with their paths in the guest's tree. The caller must
// not change them.
var Files = sync.OnceValue(func() (list []sandbox.File) {
	names, err := fs.Glob(files, "*")
	for _, name := range names {
		text, failed := files.ReadFile(name)
		err = errors.Join(err, failed)
		list = append(list, sandbox.File{Path: path.Join(Dir, name), Mode: 0o644, Data: text})
	}
	prelude := &list[slices.IndexFunc(list, func(f sandbox.File) bool { return f.Path == Prelude })]
	before, after, _ := bytes.Cut(prelude.Data, []byte("// guest.go inserts"))
	before = slices.Clip(before)
	for _, name := range startModules {
		text, failed := files.ReadFile(name)
		err = errors.Join(err, failed)
		before = fmt.Appendf(before, "load('%s', (function (module, require) {%s}));\n", name, text)
	}
	prelude.Data = slices.Concat(before, []byte("// guest.go has inserted"), after)
	if err != nil {
		panic(err) // the files are part of this program
	}
	return list
})

// Program is what a Node process of a run reads before it starts the program: a JSON
// object, and the program's code. program.cjs describes the format.
type Program struct {
	Path       string     `json:"path"`           // of the module, in the guest's tree
	Dir        string     `json:"dir,omitempty"`  // working directory that a new Node enters; "": it began there
	Base       string     `json:"base,omitempty"` // path from which it imports; "": Path, where no file need exist
	Format     string     `json:"format"`         // Node's name of the module format
	Mapped     bool       `json:"mapped,omitempty"`
	TypeScript bool       `json:"typescript,omitempty"` // it may import TypeScript, which translate frames ask for
	Value      int64      `json:"value"`                // maximum bytes of a value; 0: no __return
	Globals    string     `json:"globals,omitempty"`    // JSON of the host's values by name
	Functions  [][]string `json:"functions,omitempty"`  // paths of the host's functions
	Async      []int      `json:"async,omitempty"`      // indices of the functions that return promises
	Args       int64      `json:"args,omitempty"`       // maximum bytes of a call's arguments
	BigInts    bool       `json:"bigInts,omitempty"`    // BigInts become integers of JSON
	Evaluate   *Evaluate  `json:"evaluate,omitempty"`
	Context    *Context   `json:"context,omitempty"`

	Code   string `json:"-"`
	Source string `json:"-"` // content of the file at Path, if there is a Base
}

// Evaluate configures the evaluation of a snippet.
type Evaluate struct {
	LogBounds
	Form     string `json:"form,omitempty"`     // of the value: "" for JSON, "text" or "colors"
	Explicit bool   `json:"explicit,omitempty"` // the code says what its value is

	Interruptible bool `json:"interruptible,omitempty"` // see grace.cjs
}

// Context configures a context.
type Context struct {
	LogBounds
	Last bool `json:"last,omitempty"` // keep the last value in globalThis._
}

// LogBounds limits the lines that are sent to the host.
type LogBounds struct {
	Logs      int `json:"logs"`      // maximum number of lines
	LogLength int `json:"logLength"` // maximum characters of a line
}

// MaxLogBytes returns the maximum size of a line of so many characters on the wire.
func MaxLogBytes(characters int) int64 { return int64(6*(characters+1)) + 8 }

// Cell is a cell of a context, as context.cjs reads it.
type Cell struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Value int64  `json:"value"` // maximum bytes of the value
	Evaluate
	Globals string `json:"globals,omitempty"`
}

// Open returns the program in a sealed memory file, which no process can change while it is
// read.
func (p *Program) Open() (*os.File, error) {
	head, err := json.Marshal(struct {
		Wire int `json:"wire"`
		*Program
	}{wire.Version, p})
	if err != nil {
		return nil, err
	}
	return kernfile.Seal("program", slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head, []byte(p.Code)))
}
