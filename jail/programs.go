package jail

import (
	"os"
	"sync"

	"gaol/jail/mounts"
	"gaol/jail/step"
)

// programs is the folder of AddProgram.
type programs struct {
	mu  sync.Mutex
	dir *os.File
}

func (p *programs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dir.Close() // it may be nil
	p.dir = nil
}

// use calls f with the folder, unless the jail is closed.
func (p *programs) use(name string, f func(dir *os.File) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == nil {
		return ErrClosed
	}
	return step.Wrap(name, "program", f(p.dir))
}

// AddProgram makes a folder in ProgramDir with a file of that name, which processes of the jail
// can read and not change, and a link node_modules to packages. No folder of that name may exist.
func (j *Jail) AddProgram(folder string, file File, packages string) error {
	return j.programs.use("write", func(dir *os.File) error {
		return mounts.WriteProgram(dir, folder, file, packages, j.slot.firstHostID())
	})
}

// RemoveProgram removes what AddProgram has made.
func (j *Jail) RemoveProgram(folder, file string) error {
	return j.programs.use("remove", func(dir *os.File) error { return mounts.RemoveProgram(dir, folder, file) })
}
