package programs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"debug/elf"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	"gaol/jail/enter"
	"gaol/jail/hostcommand"
	"gaol/jail/zygote"
)

// The programs.
const (
	Enter   = "enter"     // applies the last restrictions to a process of a jail; static
	Zygote  = "zygote.so" // makes Node forkable; a shared object
	Command = "command"   // calls a command of the host; static
	Reaper  = "catatonit" // the first process of a jail; static
	Busybox = "busybox"   // the small tools of an image; static
)

// all are the programs, in the order in which they are made.
var all = []string{Enter, Zygote, Command, Reaper, Busybox}

// Maker makes the programs, or has prebuilt ones. The zero value of each field but the sources is
// useful.
type Maker struct {
	Enter, Zygote, Command string // C source
	Reaper, Busybox        string // host paths of static programs
	Compiler               string // empty: cc
	Arch                   string // as Go names it; empty: that of this binary
	Prebuilt               fs.FS  // the output of Prebuild; nil: the programs are made on this machine
}

// Default returns a Maker of gaol's own sources and Debian's programs, with the programs that are
// embedded in this binary, if there are any.
func Default() Maker {
	return Maker{
		Enter:    enter.Source,
		Zygote:   zygote.Source,
		Command:  hostcommand.Source,
		Reaper:   "/usr/bin/catatonit",
		Busybox:  "/bin/busybox",
		Prebuilt: embedded(),
	}
}

// ErrOutdated is the error for prebuilt programs that were made for another processor or of other
// sources than those in this binary.
var ErrOutdated = errors.New("the embedded programs do not match this binary: build gaol again with make build")

// Open opens a program. If it is not prebuilt, Open makes it in the folder temp.
func (m *Maker) Open(ctx context.Context, name, temp string) (io.ReadCloser, error) {
	if m.Prebuilt != nil {
		if err := m.Check(); err != nil {
			return nil, err
		}
		return m.Prebuilt.Open(name)
	}
	out := filepath.Join(temp, name)
	if err := m.Make(ctx, name, out); err != nil {
		return nil, err
	}
	return os.Open(out)
}

// Make makes a program at the host path out. All but the shared object must be static, whatever the
// compiler makes of the flags.
func (m *Maker) Make(ctx context.Context, name, out string) (err error) {
	switch name {
	case Enter:
		err = m.compile(ctx, m.Enter, out, enterFlags)
	case Zygote:
		return m.compile(ctx, m.Zygote, out, zygoteFlags)
	case Command:
		err = m.compile(ctx, m.Command, out, hostcommand.Flags)
	case Reaper:
		err = copyFile(m.Reaper, out)
	case Busybox:
		err = copyFile(m.Busybox, out)
	default:
		err = fs.ErrNotExist
	}
	if err == nil && !IsStatic(out) {
		err = fmt.Errorf("%s is not a static program", name)
	}
	return err
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// arch returns the processor that the programs are for.
func (m *Maker) arch() string { return cmp.Or(m.Arch, goruntime.GOARCH) }

// hashes has results of SourceHash by their sources, which are long.
var hashes sync.Map

// SourceHash identifies all that gaol compiles, how, and for which processor.
func (m *Maker) SourceHash() string {
	sources := [...]string{m.arch(), m.Enter, m.Zygote, m.Command}
	if known, ok := hashes.Load(sources); ok {
		return known.(string)
	}
	text := slices.Clone(sources[:])
	for _, flags := range [][]string{commonFlags, enterFlags, zygoteFlags, hostcommand.Flags} {
		text = append(text, strings.Join(flags, " "))
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(text, "\x00"))))
	hashes.Store(sources, hash)
	return hash
}

// The compiler's flags. There are no symbols, and the source comes from standard input: the
// result must not depend on the folder in which it is compiled.
var (
	commonFlags = []string{"-O2", "-Wall", "-Wextra", "-Werror", "-s", "-x", "c", "-"}
	enterFlags  = []string{"-static"}
	zygoteFlags = []string{"-shared", "-fPIC"}
)

// compile compiles C source to the file out.
func (m *Maker) compile(ctx context.Context, source, out string, flags []string) error {
	cmd := exec.CommandContext(ctx, cmp.Or(m.Compiler, "cc"), slices.Concat(commonFlags, []string{"-o", out}, flags)...)
	cmd.Stdin = strings.NewReader(source)
	if text, err := cmd.CombinedOutput(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("cc: %w: %s", err, firstError(string(text)))
	}
	return nil
}

// firstError returns the first error line of a compiler's output.
func firstError(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "error:") })
	return lines[max(at, 0)]
}

// sourcesFile contains the hash of the sources. It is written last, so that an incomplete folder counts as empty.
const sourcesFile = "sources"

// folder contains a README, and the files that the flag -overlay of go build adds.
//
//go:embed prebuilt
var folder embed.FS

// embedded returns the programs that are embedded in this binary, nil if there are none.
func embedded() fs.FS {
	files, err := fs.Sub(folder, "prebuilt")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(files, sourcesFile); err != nil {
		return nil
	}
	return files
}

// Check returns ErrOutdated if the prebuilt programs were made of other sources.
func (m *Maker) Check() error {
	text, err := fs.ReadFile(m.Prebuilt, sourcesFile)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOutdated, err)
	}
	if string(text) != m.SourceHash() {
		return ErrOutdated
	}
	return nil
}

// Prebuild makes all programs in the folder dir, which it replaces, with the hash of the sources. It writes a
// file beside the folder, dir.json, for the flag -overlay of go build, which embeds them as
// files of the source folder embedIn.
func (m *Maker) Prebuild(ctx context.Context, dir, embedIn string) error {
	overlay := dir + ".json"
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(overlay), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for _, name := range all {
		out := filepath.Join(dir, name)
		if err := m.Make(ctx, name, out); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := m.checkMachine(out); err != nil {
			return err
		}
	}
	replace := map[string]string{}
	for _, name := range append([]string{sourcesFile}, all...) {
		replace[filepath.Join(embedIn, name)] = filepath.Join(dir, name)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, sourcesFile), []byte(m.SourceHash()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(overlay, text, 0o644)
}

// machines are the processors that gaol supports.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkMachine returns an error unless the program is for the Maker's processor.
func (m *Maker) checkMachine(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if want, known := machines[m.arch()]; !known || f.Machine != want {
		return fmt.Errorf("%s is for %s, not for %s", path, f.Machine, m.arch())
	}
	return nil
}
