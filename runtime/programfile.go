package runtime

import (
	"crypto/rand"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"gaol/runtime/internal/sandbox"
)

// programs names the folders of a sandbox's programs.
type programs struct{ count atomic.Int64 }

// next returns a new name: a number, or with secret one that no guest can guess.
func (p *programs) next(secret bool) string {
	name := strconv.FormatInt(p.count.Add(1), 10)
	if secret {
		name += "-" + strings.ToLower(rand.Text()[:16]) // 80 bits
	}
	return name
}

// addFile writes the run's program, if it is a file.
func (r *activeRun) addFile() error {
	p := r.task.program
	if p == nil || p.Base == "" {
		return nil
	}
	file := sandbox.File{Path: path.Base(p.Path), Mode: 0o444, Data: []byte(p.Source)}
	err := r.rt.sandbox.AddProgram(r.task.folder, file, path.Join(path.Dir(p.Base), "node_modules"))
	r.hasFile = err == nil
	p.Source = ""
	return err
}

// removeFile undoes addFile.
func (r *activeRun) removeFile() {
	if r.hasFile {
		r.hasFile = false
		_ = r.rt.sandbox.RemoveProgram(r.task.folder, path.Base(r.task.program.Path)) // fails only if the sandbox is closed
	}
}
