package sandboxtools

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// What a listing has at most.
const (
	maxEntries   = 10_000
	maxPathBytes = 4 << 20
)

// ListDirectory is sandbox_list_directory.
func (t *Toolbox) ListDirectory(ctx context.Context, a ListDirectoryArgs) (ListDirectoryResult, error) {
	return use(ctx, t, "sandbox_list_directory", a, listDirectory)
}

func listDirectory(ctx context.Context, s *sandbox, a ListDirectoryArgs) (ListDirectoryResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return ListDirectoryResult{}, err
	}
	l := &listing{ctx: ctx, recursive: a.Recursive, result: ListDirectoryResult{Path: p, Entries: []Entry{}}}
	err = s.files().Walk(p, l.visit)
	if _, tooMany := errors.AsType[*hostfs.LimitError](err); tooMany && len(l.result.Entries) > 0 {
		l.result.Truncated = true // deeper, or more, than a walk goes
		err = nil
	}
	return l.result, err
}

// listing is what a walk has found. It ends with ctx: a tree can take a while.
type listing struct {
	ctx       context.Context
	recursive bool
	bytes     int
	result    ListDirectoryResult
}

func (l *listing) visit(p string, info *hostfs.Info, err error) error {
	first := p == l.result.Path
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case errors.Is(err, runtime.ErrClosed):
		return err
	case err != nil && first:
		return err
	case err != nil:
		l.result.Truncated = true
		return nil
	case first && !info.IsDir():
		return &fs.PathError{Op: "list", Path: p, Err: unix.ENOTDIR}
	case first:
		return nil
	}
	if l.bytes += len(p); len(l.result.Entries) == maxEntries || l.bytes > maxPathBytes {
		l.result.Truncated = true
		return fs.SkipAll
	}
	l.result.Entries = append(l.result.Entries, Entry{Name: info.Name(), Type: typeOf(info.Mode()), Size: info.Size(), Path: p})
	if !l.recursive && info.IsDir() {
		return fs.SkipDir
	}
	return nil
}
