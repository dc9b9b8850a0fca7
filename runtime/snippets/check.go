package snippets

import (
	"cmp"
	"fmt"
	"io/fs"
	"time"
	"unicode/utf8"

	"gaol/internal/lazyregexp"
	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
)

// Limits of an [Input].
const (
	MaxFiles = 10
	MaxBytes = 200_000 // of all files together

	DefaultTimeout = 5 * time.Second
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = 10 * time.Second

	// EntryPath is the file that runs.
	EntryPath = bundle.EntryPath
)

var validPath = lazyregexp.New(`^[\w./-]{1,128}$`)

// check validates an input, and returns its files and timeout.
func (in Input) check() ([]File, time.Duration, error) {
	files := in.Files
	switch {
	case in.Source != "" && files != nil:
		return nil, 0, invalid("give either source or files, not both")
	case in.Source == "" && files == nil:
		return nil, 0, invalid("there is neither source nor files")
	case in.Source != "":
		files = []File{{Path: EntryPath, Source: in.Source}}
	}
	if err := checkFiles(files); err != nil {
		return nil, 0, err
	}
	return files, max(MinTimeout, min(cmp.Or(in.Timeout, DefaultTimeout), MaxTimeout)), nil
}

func checkFiles(files []File) error {
	if len(files) == 0 || len(files) > MaxFiles {
		return invalid("there are %d files: 1 to %d are allowed", len(files), MaxFiles)
	}
	total := 0
	for _, f := range files {
		if total += len(f.Source); total > MaxBytes {
			return &InputError{InputTooLarge, fmt.Sprintf("the files have more than %d bytes together", MaxBytes)}
		}
	}
	seen := map[string]bool{}
	for _, f := range files {
		switch {
		case !validPath().MatchString(f.Path):
			return invalid("path %.128q: a path has 1 to 128 letters, digits, and _ . / -", f.Path)
		case !fs.ValidPath(f.Path) || f.Path == ".":
			return invalid("path %s: it leads out of the snippet's folder, or is not in its shortest form", f.Path)
		case f.Source == "":
			return invalid("file %s: it is empty", f.Path)
		case !utf8.ValidString(f.Source):
			return invalid("file %s: it is not UTF-8", f.Path)
		case seen[f.Path]:
			return invalid("file %s: there are two of this path", f.Path)
		}
		seen[f.Path] = true
	}
	if !seen[EntryPath] {
		return invalid("there is no file %s", EntryPath)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &InputError{InputInvalid, fmt.Sprintf(format, args...)}
}

// Validate returns an [*InputError] for an input that breaks a rule of [Input].
func (in Input) Validate() error {
	_, _, err := in.check()
	return err
}

// Limits returns the limits of a snippet's sandbox.
func Limits() runtime.Limits {
	l, def := Options{}.sandbox().Limits, runtime.DefaultLimits()
	l.Memory, l.CPUs, l.Disk = cmp.Or(l.Memory, def.Memory), cmp.Or(l.CPUs, def.CPUs), cmp.Or(l.Disk, def.Disk)
	return l
}
