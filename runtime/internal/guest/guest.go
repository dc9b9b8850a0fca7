package guest

import (
	"embed"
	"io/fs"
	"path"
	"sync"

	"gaol/jail"
)

// Where a guest's file tree has the files.
const (
	Dir     = "/usr/libexec/gaol"
	Prelude = Dir + "/prelude.cjs" // preloaded by every program
	Zygote  = Dir + "/zygote.cjs"  // preloaded by a zygote
)

//go:embed *.cjs
var files embed.FS

// Files returns the JavaScript files with their paths in the guest's tree. The caller must
// not change them.
var Files = sync.OnceValue(func() (list []jail.File) {
	names, err := fs.Glob(files, "*")
	for _, name := range names {
		var text []byte
		if text, err = files.ReadFile(name); err == nil {
			list = append(list, jail.File{Path: path.Join(Dir, name), Mode: 0o644, Data: text})
		}
	}
	if err != nil {
		panic(err) // the files are part of this program
	}
	return list
})
