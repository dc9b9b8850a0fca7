package sandboxtools

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// The maximum size of a listing.
const (
	maxEntries   = 10_000
	maxPathBytes = 4 << 20
)

// ListDirectory implements sandbox_list_directory.
func (t *Toolbox) ListDirectory(ctx context.Context, a ListDirectoryArgs) (ListDirectoryResult, error) {
	return use(ctx, t, "sandbox_list_directory", a, func(s *sandbox, a ListDirectoryArgs) (ListDirectoryResult, error) {
		l := &listing{ctx: ctx, recursive: a.Recursive, result: ListDirectoryResult{Path: a.Path, Entries: []Entry{}}}
		err := s.files().Walk(a.Path, l.visit)
		if _, tooLarge := errors.AsType[*hostfs.LimitError](err); tooLarge && len(l.result.Entries) > 0 { // a limit of Walk
			l.result.Truncated, err = true, nil
		}
		return l.result, err
	})
}

// listing collects the entries of a walk. It checks ctx, as a large tree takes time.
type listing struct {
	ctx       context.Context
	recursive bool
	pathBytes int
	result    ListDirectoryResult
}

func (l *listing) visit(p string, info *hostfs.Info, err error) error {
	root := p == l.result.Path
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case err != nil && (root || errors.Is(err, runtime.ErrClosed)):
		return err
	case err != nil:
		l.result.Truncated = true
		return nil
	case root && !info.IsDir():
		return &fs.PathError{Op: "list", Path: p, Err: unix.ENOTDIR}
	case root:
		return nil
	}
	if l.pathBytes += len(p); len(l.result.Entries) == maxEntries || l.pathBytes > maxPathBytes {
		l.result.Truncated = true
		return fs.SkipAll
	}
	l.result.Entries = append(l.result.Entries, Entry{Name: info.Name(), Type: typeName(info.Mode()), Size: info.Size(), Path: p})
	if !l.recursive && info.IsDir() {
		return fs.SkipDir
	}
	return nil
}
